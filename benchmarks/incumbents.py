"""Does the default budget find the best known labelling of the published instances?"""

from __future__ import annotations

import argparse
import time

from benchmarks.datasets.published import data_dir, published_instances
from benchmarks.objective import recomputed_cost, violated_pairs
from benchmarks.tables import show
from certikmeans import solve

TOLERANCE = 1e-6


def main(arguments: argparse.Namespace) -> None:
    """Print a row per instance and how many reach the best known cost."""
    directory = data_dir(arguments.data_dir)
    if directory is None:
        print("skipped: the published instances are not here (--data-dir)")
        return
    rows = []
    reached = total = 0
    for instance in published_instances(directory):
        if arguments.small and total == 4:
            break
        began = time.perf_counter()
        result = solve(instance.problem, seed=arguments.seed)
        seconds = time.perf_counter() - began
        assert result.labels is not None
        cost = recomputed_cost(instance.problem, result.labels)
        excess = cost / instance.best_known - 1.0
        broken = violated_pairs(instance.problem, result.labels)
        reached += excess <= TOLERANCE and broken == 0
        total += 1
        rows.append([instance.name, f"{cost:.10g}", f"{excess:+.1e}", broken, f"{seconds:.2f}"])
    print(show(["instance", "cost", "above best known", "pairs broken", "seconds"], rows))
    print(f"\n{reached} of {total} within {TOLERANCE:g} of the best known cost")
