"""`certikmeans.solve` with tasks on threads or on a Dask cluster."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from benchmarks.solvers.base import AbstractSolver, SolverOutcome, outcome_from_result
from certikmeans import Problem, solve, warm_up

START_SECONDS = 120.0  # for a cluster to start


@final
@dataclass(frozen=True)
class ExecutorSolver(AbstractSolver):
    """`solve` with a node limit, so that all executors do the same work."""

    where: str  # "threads" or "dask"
    workers: int = 2
    gap: float = 1e-3
    bound: str = "auto"
    branching: str = "auto"
    node_limit: int = 1_000

    @property
    def name(self) -> str:
        """Kind and number of workers."""
        return f"{self.where}, {self.workers}"

    @property
    def options(self) -> dict[str, Any]:
        """Options of `solve` besides limit and seed."""
        return {
            "gap": self.gap,
            "bound": self.bound,
            "branching": self.branching,
            "node_limit": self.node_limit,
        }

    def warm_up(self) -> None:
        """Compile."""
        warm_up()

    def seconds_needed(self, limit: float) -> float:
        """The run, and the start of a cluster."""
        return limit + START_SECONDS

    def run(self, problem: Problem, limit: float, seed: int) -> SolverOutcome:
        """Solve on threads or on the cluster."""
        options = {**self.options, "time_limit": limit, "seed": seed}
        details: dict[str, Any] = {}
        began = time.perf_counter()
        if self.where == "dask":
            with _dask(self.workers) as client:
                details["start_seconds"] = time.perf_counter() - began
                result = solve(problem, executor=client, jobs=self.workers, **options)
        else:
            result = solve(problem, jobs=self.workers, **options)
        return outcome_from_result(
            result,
            details=details,
        )


@contextmanager
def _dask(workers: int) -> Iterator[Any]:
    """Run a cluster on this machine, of processes that have loaded and compiled the code."""
    from distributed import Client

    root = Path(__file__).resolve().parents[2]
    where = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    running: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "scheduler.json"

        def start(kind: str, *given: str) -> None:
            command = [sys.executable, "-m", "dask", kind, "--scheduler-file", str(file)]
            silent = subprocess.DEVNULL
            running.append(
                subprocess.Popen(
                    [*command, "--no-dashboard", *given], stdout=silent, stderr=silent, env=where
                )
            )

        try:
            start("scheduler", "--port", "0", "--host", "127.0.0.1")
            while not file.exists():
                time.sleep(0.05)
            for _ in range(workers):
                start("worker", "--nthreads", "1", "--no-nanny", "--host", "127.0.0.1")
            with Client(scheduler_file=str(file)) as client:  # type: ignore[no-untyped-call]
                client.wait_for_workers(workers, timeout=START_SECONDS)
                client.run(warm_up)
                yield client
        finally:
            for process in running:
                process.kill()
                process.wait()
