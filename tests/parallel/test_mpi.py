"""Runs on MPI, where a library and mpi4py are installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from ctypes.util import find_library
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json
import numpy as np
from mpi4py.futures import MPIPoolExecutor
from certikmeans import Problem, solve
from certikmeans.parallel import RemoteExecutor

def main():
    rng = np.random.default_rng(0)
    problem = Problem.from_data(rng.uniform(size=(16, 2)), 3, cannot_link=[(0, 1), (2, 3)])
    options = dict(bound="sample", node_limit=60, jobs=1)
    local = solve(problem, **options)
    with MPIPoolExecutor() as executor:
        remote = RemoteExecutor(executor)
        found = solve(problem, executor=remote, **options)
    same = bool((local.labels == found.labels).all())
    print(json.dumps([local.nodes, found.nodes, local.lower_bound, found.lower_bound, same,
                      remote.n_sent, remote.n_data_sent]))

if __name__ == "__main__":
    main()
"""


def launcher():
    """Return mpiexec: of a wheel (`pip install mpich`), or of the system."""
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        pytest.skip("no mpiexec")
    return found


def library(launched_by, folder):
    """Provide the name of the library that mpi4py wheels look for; Debian's mpich has another."""
    if Path(launched_by).parent == Path(sys.executable).parent:
        return {}  # of the wheel, as it has to be
    found = find_library("mpi") or find_library("mpich") or ""
    if not found.startswith("libmpich.so"):
        return {}
    (folder / "libmpi.so.12").symlink_to(next(Path("/usr/lib").glob(f"*/{found}")))
    return {"LD_LIBRARY_PATH": str(folder)}


@pytest.mark.slow
def test_same_result_as_local(tmp_path):
    pytest.importorskip("mpi4py")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    start = launcher()
    where = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [start, "-n", "4", sys.executable, "-m", "mpi4py.futures", program],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, **library(start, tmp_path), "PYTHONPATH": os.pathsep.join(where)},
    )
    assert done.returncode == 0, done.stderr
    nodes, remote_nodes, bound, remote_bound, same, sent, data_sent = json.loads(
        done.stdout.splitlines()[-1]
    )
    assert nodes == remote_nodes > 2
    assert bound == remote_bound
    assert same
    assert sent > 10
    assert 3 <= data_sent < sent  # one for each worker, and for those that got none of these
