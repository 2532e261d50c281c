"""How fast the command line answers and the package imports."""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

from benchmarks.pages import show


def _seconds(command: list[str], repeats: int) -> float:
    """Median wall time of a fresh process."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def main(arguments: argparse.Namespace) -> None:
    """Print medians and the ratio of the two imports, measured in turn."""
    repeats = 3 if arguments.small else 11
    python = sys.executable
    ours = "from certikmeans import ConstrainedKMeans"
    theirs = "from sklearn.cluster import KMeans"
    rows = [
        ["certikmeans --help", _seconds([python, "-m", "certikmeans", "--help"], repeats)],
        ["import certikmeans", _seconds([python, "-c", "import certikmeans"], repeats)],
        [ours, _seconds([python, "-c", ours], repeats)],
        [theirs, _seconds([python, "-c", theirs], repeats)],
    ]
    print(show(["what", "seconds"], [[what, f"{seconds:.3f}"] for what, seconds in rows]))
    print(f"\nimport ratio: {rows[2][1] / rows[3][1]:.2f} (aim: below 1.5)")  # type: ignore[operator]
