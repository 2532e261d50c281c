"""The gallery shows the examples that there are, as they are."""

from __future__ import annotations

import re

import pytest
from tools.gallery import EXAMPLES, GALLERY, LARGEST_PICTURE, index, names, page, read_example

PRINTED = re.compile(r"^```text\n(.*?)\n```$", flags=re.DOTALL | re.MULTILINE)


def code_of(text):
    return re.findall(r"^```python\n(.*?)\n```$", text, flags=re.DOTALL | re.MULTILINE)


def test_there_is_a_gallery():
    assert len(names()) >= 9


@pytest.mark.parametrize("name", names())
def test_page_shows_the_example_as_it_is(name):
    """Text and code; what was printed may differ in its digits from run to run."""
    example = read_example(EXAMPLES / f"{name}.py")
    shown = (GALLERY / f"{name}.md").read_text(encoding="utf-8")
    assert code_of(shown) == [part.code for part in example.blocks if part.code], "make gallery"
    silent = page(example, [""] * len(example.blocks), [])
    assert silent.startswith(f"# {example.title}\n")
    words = re.sub(r"!\[.*\]\(.*\)", "", PRINTED.sub("", shown)).split()
    assert words == silent.split(), "make gallery"
    assert PRINTED.search(shown)
    assert f"]({name}.png)" in shown


@pytest.mark.parametrize("name", names())
def test_pictures_are_small(name):
    assert 2_000 < (GALLERY / f"{name}.png").stat().st_size <= LARGEST_PICTURE


def test_first_page_lists_every_example():
    examples = [read_example(EXAMPLES / f"{name}.py") for name in names()]
    assert (GALLERY / "index.md").read_text(encoding="utf-8") == index(examples), "make gallery"


def test_nothing_is_left_of_examples_that_are_gone():
    assert {path.stem for path in GALLERY.iterdir()} == {*names(), "index"}
