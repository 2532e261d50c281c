"""Every example of the gallery runs, in its own process without a display."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.forkserver import run_in_forkserver

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


def test_examples_found():
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, tmp_path):
    pytest.importorskip("matplotlib")
    run = run_in_forkserver(
        str(path), cwd=tmp_path, environment={**os.environ, "MPLBACKEND": "agg"}
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout
    assert not list(tmp_path.iterdir())


WITHOUT_RUN = {"certainty", "noisy-pairs"}  # sketches, for data of the reader


def _python_of(path):
    """Blocks of Python on a page, as one program."""
    text = path.read_text(encoding="utf-8")
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE))


PAGES_WITH_CODE = [
    path
    for path in [ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
    if path.stem not in WITHOUT_RUN and _python_of(path)
]


@pytest.mark.parametrize("path", PAGES_WITH_CODE, ids=lambda path: path.stem)
def test_page_code_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(_python_of(path), path.name, "exec"), {})


def test_code_of_readme_prints_what_it_shows(capsys):
    path = ROOT / "README.md"
    exec(compile(_python_of(path), path.name, "exec"), {})
    shown = re.search(r"^```text\n(.*?)^```", path.read_text(encoding="utf-8"), re.S | re.M)
    assert capsys.readouterr().out == shown.group(1)


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 700
