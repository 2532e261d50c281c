"""Nodes on Dask and on MPI: the same answer as here."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json
import numpy as np
from certikmeans import Problem, solve
from certikmeans.generate import random_pairs

{imports}

def main():
    rng = np.random.default_rng(0)
    points, classes = rng.uniform(size=(30, 2)), rng.integers(4, size=30)
    _, cannot = random_pairs(classes, 0, 60, seed=0)
    problem = Problem.from_data(points, 4, cannot_link=cannot)
    options = dict(gap=1e-4, branching="pairs", bound="cluster")
    here = solve(problem, **options)
    with {executor}:
        there = solve(problem, executor={handle}, **options)
    same = bool((here.labels == there.labels).all())
    print(json.dumps([here.nodes, there.nodes, here.lower_bound, there.lower_bound, same]))

if __name__ == "__main__":
    main()
"""


def run(tmp_path, *before, **parts):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(**parts))
    done = subprocess.run(
        [*before, sys.executable, program], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def check(answer):
    nodes_here, nodes_there, bound_here, bound_there, same = answer
    assert nodes_here == nodes_there > 1
    assert bound_here == bound_there
    assert same


def test_dask(tmp_path):
    pytest.importorskip("distributed")
    cluster = "Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client"
    check(
        run(
            tmp_path,
            imports="from distributed import Client",
            executor=cluster,
            handle="client.get_executor()",
        )
    )


def test_mpi(tmp_path):
    pytest.importorskip("mpi4py")
    try:
        from mpi4py import MPI  # noqa: F401
    except (ImportError, RuntimeError) as error:
        pytest.skip(f"no MPI library: {error}")
    check(
        run(
            tmp_path,
            imports="from mpi4py.futures import MPIPoolExecutor",
            executor="MPIPoolExecutor(2) as executor",
            handle="executor",
        )
    )
