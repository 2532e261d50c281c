"""A whole process from its start, with kernels compiled before or never: what a user waits for."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from benchmarks.solvers.base import AbstractSolver, SolverOutcome, finite
from certikmeans import Problem

_FIT = """
import json, sys
import numpy as np
from certikmeans import ConstrainedKMeans
points, must, cannot = (np.load(name) for name in ("p.npy", "m.npy", "c.npy"))
model = ConstrainedKMeans(int(sys.argv[1])).fit(points, must_link=must, cannot_link=cannot)
print(json.dumps({"labels": model.labels_.tolist(), "lower_bound": model.lower_bound_,
    "stop_reason": str(model.status_)}))
"""
ENTRIES = {
    "command": ["-m", "certikmeans", "solve", "p.npy", "--json", "--quiet", "-k"],
    "fit": ["-W", "ignore", "-c", _FIT],
}
STARTS = {
    "--help": ["-m", "certikmeans", "--help"],
    "import ConstrainedKMeans": ["-c", "from certikmeans import ConstrainedKMeans"],
    "import KMeans of scikit-learn": ["-c", "from sklearn.cluster import KMeans"],
}


@final
@dataclass(frozen=True)
class NewProcessSolver(AbstractSolver):
    """Starts Python, solves, ends; the time is that of the whole.

    Parameters
    ----------
    entry : str
        Of `ENTRIES`, or of `STARTS`: those only start.
    cold : bool
        Nothing was ever compiled: numba's cache is an empty directory.
    repeats : int
        The fastest counts. What is compiled once is timed once.
    """

    entry: str
    cold: bool = False
    repeats: int = 5

    @property
    def name(self) -> str:
        """What is started, and how."""
        if self.entry in STARTS:
            return self.entry
        return f"{self.entry}, {'cold' if self.cold else 'warm'}"

    @property
    def options(self) -> dict[str, Any]:
        """The three fields."""
        return {"entry": self.entry, "cold": self.cold, "repeats": self.repeats}

    def run(self, problem: Problem, limit: float, seed: int) -> SolverOutcome:
        """Start it the given number of times, in a directory with the points and the pairs."""
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            np.save(place / "p.npy", problem.points)
            np.save(place / "m.npy", problem.must_link)
            np.save(place / "c.npy", problem.cannot_link)
            command = [sys.executable, *self._command(problem)]
            if self.cold:
                runs = [_timed(command, place, limit, place / "kernels")]
            else:
                _timed(command, place, limit)  # compiles, if need be
                runs = [_timed(command, place, limit) for _ in range(self.repeats)]
        wall, processor, said = min(runs)
        found = json.loads(said) if self.entry in ENTRIES else {}
        labels = found.get("labels")
        return SolverOutcome(
            labels=None if labels is None else np.array(labels, dtype=np.int64),
            lower_bound=finite(found.get("lower_bound")),
            nodes=None,
            seconds=wall,
            stop_reason=found.get("stop_reason", "started"),
            details={"processor_seconds": processor},
        )

    def _command(self, problem: Problem) -> list[str]:
        if self.entry in STARTS:
            return STARTS[self.entry]
        command = [*ENTRIES[self.entry], str(problem.n_clusters)]
        if self.entry == "command" and len(problem.must_link):
            command += ["--must-link", "m.npy"]
        if self.entry == "command" and len(problem.cannot_link):
            command += ["--cannot-link", "c.npy"]
        return command


def _timed(
    command: list[str], place: Path, limit: float, cache: Path | None = None
) -> tuple[float, float, str]:
    """Seconds on the wall, seconds of all processes started, and what it said."""
    environment = dict(os.environ)
    # From another directory, the package is still found where it is now.
    environment["PYTHONPATH"] = os.pathsep.join(str(Path(path).resolve()) for path in sys.path)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        command, cwd=place, env=environment, capture_output=True, text=True, timeout=limit
    )
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{command[1:3]} ended with {done.returncode}: {done.stderr[-500:]}")
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, processor, done.stdout
