"""``python -m tools.mutants [TEXT]``: run the mutants whose name contains TEXT, or all of them.

Every mutant is applied to a copy of the sources, and its tests run against the copy. Results are
written to docs/benchmarks/mutants.jsonl, and the page mutants.md from them. With ``--missing``,
mutants that have a result are left out, so that an interrupted run can be continued.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from benchmarks.pages import show, write_page

from tools.mutants.catalogue import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks" / "mutants.md"
RESULTS = PAGE.with_suffix(".jsonl")
LINKED = ("tests", "benchmarks", "tools", "examples", "docs", "pyproject.toml", "README.md")
TIMEOUT_SECONDS = 600.0  # compiling included

INTRODUCTION = """# Mutants of the trusted core

Written by `python -m tools.mutants`. Each line is one change of the code that proofs rest \
on, applied to a copy of the sources. A mutant is killed if one of its tests fails; `make \
test-slow` requires it. The line names the test that failed first. Covered mutants change a term \
whose error another term covers as well: no test can fail, and the line says which term covers it.
"""


@dataclass(frozen=True)
class Outcome:
    """What the tests said of a mutant."""

    mutant: Mutant
    killed_by: str  # the test that failed first; empty if none did
    seconds: float


def mutated(mutant: Mutant, text: str) -> str:
    """Return the text of a file with the change applied.

    >>> mutated(Mutant("a", "f", "x < 1", "x <= 1", ()), "if x < 1:")
    'if x <= 1:'
    """
    if text.count(mutant.before) != 1:
        raise ValueError(f"{mutant.name}: text found {text.count(mutant.before)} times")
    return text.replace(mutant.before, mutant.after)


def run_mutant(mutant: Mutant) -> Outcome:
    """Run the tests of a mutant against a copy of the sources, which shares unchanged files."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        shutil.copytree(ROOT / "src", scratch / "src", copy_function=_link)
        for name in LINKED:
            (scratch / name).symlink_to(ROOT / name)
        path = scratch / mutant.file
        text = mutated(mutant, path.read_text(encoding="utf-8"))
        path.unlink()
        path.write_text(text, encoding="utf-8")
        _forget_compiled(scratch, path)
        found = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
             "-m", "not slow", *mutant.tests],
            cwd=scratch,
            env={**os.environ, "PYTHONPATH": str(scratch / "src"), "CERTIKMEANS_FAST_SEEDS": "50"},
            capture_output=True, text=True, check=False, timeout=TIMEOUT_SECONDS,
        )  # fmt: skip
    output = found.stdout + found.stderr
    if found.returncode not in (0, 1):
        raise RuntimeError(f"{mutant.name}: {output[-1000:]}")
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    return Outcome(mutant, (failed or [""])[0], time.monotonic() - began)


def _link(source: str, target: str) -> None:
    """Make a hard link, or copy where there is another file system."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _forget_compiled(scratch: Path, changed: Path) -> None:
    """Remove the compiled kernels that may contain a function of the changed file.

    The cache of numba depends on the file of a kernel only, not on those of the kernels it calls.
    """
    files = {
        ".".join(path.relative_to(scratch / "src").with_suffix("").parts): path
        for path in (scratch / "src").rglob("*.py")
    }
    imports = {name: _imported(path) for name, path in files.items()}
    stale = {name for name, path in files.items() if path == changed}
    while True:
        more = {name for name in files if imports[name] & stale} - stale
        if not more:
            break
        stale |= more
    for name in stale:
        folder = files[name].parent / "__pycache__"
        for compiled in folder.glob(f"{files[name].stem}.*.nb?"):
            compiled.unlink()


def _imported(path: Path) -> set[str]:
    return {
        node.module
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module
    }


def read_results() -> dict[str, dict[str, object]]:
    """Return the last result of every mutant of the catalogue that has one, by name."""
    lines = RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else []
    rows = {row["mutant"]: row for row in map(json.loads, lines)}
    return {mutant.name: rows[mutant.name] for mutant in MUTANTS if mutant.name in rows}


def write_results(rows: dict[str, dict[str, object]]) -> None:
    """Write results and page."""
    RESULTS.write_text("".join(f"{json.dumps(row)}\n" for row in rows.values()), encoding="utf-8")
    table = []
    for mutant in MUTANTS:
        killed_by = str(rows.get(mutant.name, {}).get("killed_by", ""))
        result = "killed" if killed_by else "covered" if mutant.covered else "SURVIVED"
        if mutant.name not in rows:
            result = "not run"
        reason = f"`{killed_by.rsplit('/', 1)[-1]}`" if killed_by else mutant.covered
        table.append([mutant.name, f"`{Path(mutant.file).name}`", result, reason])
    counts = Counter(row[2] for row in table)
    summary = ", ".join(f"{number} {result}" for result, number in sorted(counts.items()))
    columns = ["mutant", "file", "result", "killed or covered by"]
    write_page(
        PAGE,
        [INTRODUCTION, f"{len(MUTANTS)} mutants: {summary}.\n", show(columns, table) + "\n"],
    )


def main() -> None:
    """Run the chosen mutants."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("text", nargs="?", default="", help="part of the name")
    parser.add_argument("--missing", action="store_true", help="only mutants without a result")
    arguments = parser.parse_args()
    rows, survived = read_results(), False
    for mutant in MUTANTS:
        if arguments.text not in mutant.name or (arguments.missing and mutant.name in rows):
            continue
        found = run_mutant(mutant)
        state = "killed" if found.killed_by else "survived"
        survived |= not (found.killed_by or mutant.covered)
        print(f"{state:9} {found.seconds:6.1f} s  {mutant.name}  {found.killed_by}", flush=True)
        rows = read_results() | {
            mutant.name: {
                "mutant": mutant.name,
                "killed_by": found.killed_by,
                "seconds": round(found.seconds, 1),
            }
        }
        write_results(rows)
    sys.exit(survived)


if __name__ == "__main__":
    main()
