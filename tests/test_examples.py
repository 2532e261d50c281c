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


@pytest.mark.parametrize(
    "name", ["baselines", "certificates", "executors", "resume", "scikit-learn"]
)
def test_guide_code_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "guides" / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert blocks
    exec(compile("\n".join(blocks), f"{name}.md", "exec"), {})
