"""The pages of the gallery match the examples."""

from __future__ import annotations

import re

from tools.gallery import (
    EXAMPLES,
    GALLERY,
    MAX_PICTURE_BYTES,
    THUMBNAILS,
    index,
    names,
    page,
    read_example,
)

PRINTED = re.compile(r"^```text\n(.*?)\n```$", flags=re.DOTALL | re.MULTILINE)


def code_of(text):
    return re.findall(r"^```python\n(.*?)\n```$", text, flags=re.DOTALL | re.MULTILINE)


def test_gallery_is_found():
    assert len(names()) >= 9


def outdated_reason(name):
    """Why a page differs from its example, or None; printed digits may differ from run to run."""
    example = read_example(EXAMPLES / f"{name}.py")
    shown = (GALLERY / f"{name}.md").read_text(encoding="utf-8")
    silent = page(example, [""] * len(example.blocks), [])
    words = re.sub(r"!\[.*\]\(.*\)", "", PRINTED.sub("", shown)).split()
    if code_of(shown) != [part.code for part in example.blocks if part.code]:
        return "code"
    if not silent.startswith(f"# {example.title}\n") or words != silent.split():
        return "text"
    if not PRINTED.search(shown) or f"]({name}.png)" not in shown:
        return "output"
    return None


def test_pages_match_the_examples():
    outdated = {name: outdated_reason(name) for name in names()}
    assert {name: reason for name, reason in outdated.items() if reason} == {}, "make gallery"


def test_picture_size():
    sizes = {name: (GALLERY / f"{name}.png").stat().st_size for name in names()}
    assert {n: size for n, size in sizes.items() if not 2_000 < size <= MAX_PICTURE_BYTES} == {}


def test_index_lists_every_example():
    examples = [read_example(EXAMPLES / f"{name}.py") for name in names()]
    assert (GALLERY / "index.md").read_text(encoding="utf-8") == index(examples), "make gallery"


def test_no_pages_without_example():
    assert {path.stem for path in GALLERY.iterdir()} == {*names(), "index", THUMBNAILS.name}
    assert {path.stem for path in THUMBNAILS.iterdir()} == set(names())
