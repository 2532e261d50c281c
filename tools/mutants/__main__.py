"""``python -m tools.mutants [TEXT]``: run the mutants whose name contains TEXT, or all of them.

Every mutant is applied to a copy of the sources, and its tests run against the copy. With
``--page`` the results are written to docs/benchmarks/mutants.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.pages import show, write_page

from tools.mutants.catalogue import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks" / "mutants.md"
LINKED = ("tests", "benchmarks", "tools", "examples", "docs", "pyproject.toml", "README.md")
NO_TESTS_RUN = 5

INTRODUCTION = """# Mutants of the trusted core

Written by `python -m tools.mutants --page`. Each line is one change of the code that proofs rest \
on, applied to a copy of the sources. A mutant is killed if one of its tests fails; `make \
test-slow` requires it. Covered mutants change a term whose error another term covers as well.
"""


@dataclass(frozen=True)
class Outcome:
    """What the tests said of a mutant."""

    mutant: Mutant
    killed: bool
    seconds: float
    last_line: str


def mutated(mutant: Mutant, text: str) -> str:
    """Return the text of a file with the change applied.

    >>> mutated(Mutant("a", "f", "x < 1", "x <= 1", ()), "if x < 1:")
    'if x <= 1:'
    """
    if text.count(mutant.before) != 1:
        raise ValueError(f"{mutant.name}: text found {text.count(mutant.before)} times")
    return text.replace(mutant.before, mutant.after)


def run_mutant(mutant: Mutant) -> Outcome:
    """Run the tests of a mutant against a copy of the sources."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        shutil.copytree(ROOT / "src", scratch / "src")
        for name in LINKED:
            (scratch / name).symlink_to(ROOT / name)
        path = scratch / mutant.file
        path.write_text(mutated(mutant, path.read_text(encoding="utf-8")), encoding="utf-8")
        found = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider",
             "-m", "not slow", *mutant.tests],
            cwd=scratch,
            env={**os.environ, "PYTHONPATH": str(scratch / "src"), "CERTIKMEANS_FAST_SEEDS": "50"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    lines = (found.stdout + found.stderr).strip().splitlines()
    if found.returncode not in (0, 1):
        raise RuntimeError(f"{mutant.name}: " + "\n".join(lines[-5:]))
    return Outcome(
        mutant, found.returncode == 1, time.monotonic() - began, lines[-1] if lines else ""
    )


def write(outcomes: Sequence[Outcome]) -> Path:
    """Write the page."""
    rows = [
        [
            one.mutant.name,
            f"`{Path(one.mutant.file).name}`",
            "killed" if one.killed else ("covered" if one.mutant.covered else "SURVIVED"),
            one.mutant.covered,
        ]
        for one in outcomes
    ]
    killed = sum(one.killed for one in outcomes)
    covered = sum(not one.killed and bool(one.mutant.covered) for one in outcomes)
    summary = f"{len(outcomes)} mutants: {killed} killed, {covered} covered.\n"
    table = show(["mutant", "file", "result", "covered by"], rows) + "\n"
    return write_page(PAGE, [INTRODUCTION, summary, table])


def main() -> None:
    """Run the chosen mutants."""
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("text", nargs="?", default="", help="part of the name")
    parser.add_argument("--page", action="store_true", help="write the page")
    arguments = parser.parse_args()
    outcomes = []
    for mutant in MUTANTS:
        if arguments.text in mutant.name:
            outcomes.append(run_mutant(mutant))
            state = "killed" if outcomes[-1].killed else "survived"
            print(f"{state:9} {outcomes[-1].seconds:6.1f} s  {mutant.name}", flush=True)
    if arguments.page:
        print(f"wrote {write(outcomes)}")
    sys.exit(any(not one.killed and not one.mutant.covered for one in outcomes))


if __name__ == "__main__":
    main()
