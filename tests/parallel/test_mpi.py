"""Runs on MPI, where a library and mpi4py are installed: the same answer as here."""

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
from certikmeans.parallel import TaskPool, Far

def main():
    TaskPool.pays = lambda self, far, count: True
    sent, submit = [], Far.submit
    def counted(self, *given, **named):
        sent.append((self, named.get("with_data", False)))
        return submit(self, *given, **named)
    Far.submit = counted
    rng = np.random.default_rng(0)
    problem = Problem.from_data(rng.uniform(size=(16, 2)), 3, cannot_link=[(0, 1), (2, 3)])
    options = dict(bound="sample", node_limit=60, jobs=1)
    here = solve(problem, **options)
    with MPIPoolExecutor() as executor:
        there = solve(problem, executor=executor, **options)
    same = bool((here.labels == there.labels).all())
    print(json.dumps([here.nodes, there.nodes, here.lower_bound, there.lower_bound, same,
                      len(sent), sent[0][0].data_sent, sum(one[1] for one in sent)]))

if __name__ == "__main__":
    main()
"""


def launcher():
    """The program that starts MPI programs: of a wheel (`pip install mpich`), or of the system."""
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        pytest.skip("no mpiexec")
    return found


def library(launched_by, folder):
    """Debian's mpich has its library under a name that wheels of mpi4py do not look for."""
    if Path(launched_by).parent == Path(sys.executable).parent:
        return {}  # of the wheel, as it has to be
    found = find_library("mpi") or find_library("mpich") or ""
    if not found.startswith("libmpich.so"):
        return {}
    (folder / "libmpi.so.12").symlink_to(next(Path("/usr/lib").glob(f"*/{found}")))
    return {"LD_LIBRARY_PATH": str(folder)}


@pytest.mark.slow
def test_the_same_answer_as_here(tmp_path):
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
    nodes_here, nodes_there, bound_here, bound_there, same, sent, data_sent, asked = json.loads(
        done.stdout.splitlines()[-1]
    )
    assert nodes_here == nodes_there > 2
    assert bound_here == bound_there
    assert same
    assert sent > 10
    # Broadcast once; nobody had to ask.
    assert data_sent == 1
    assert asked == 0
