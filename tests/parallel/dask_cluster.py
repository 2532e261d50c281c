"""A Dask cluster of processes that communicate over TCP."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
START_SECONDS = 60.0


class Cluster:
    """Scheduler and workers, and the file with the address of the scheduler."""

    def __init__(self, folder):
        self.file = folder / "scheduler.json"
        self.scheduler = None
        self.workers = []
        self._log = (folder / "cluster.log").open("wb")

    def start(self, n_workers):
        self.scheduler = self._run("scheduler", "--port", "0", "--host", "127.0.0.1")
        deadline = time.time() + START_SECONDS
        while not self.file.exists():
            assert time.time() < deadline, "no scheduler"
            time.sleep(0.05)
        for number in range(n_workers):
            self.add(f"worker-{number}")

    def add(self, name):
        self.workers.append(
            self._run("worker", "--nthreads", "1", "--no-nanny", "--name", name, "--host",
                      "127.0.0.1")
        )  # fmt: skip

    def _run(self, kind, *arguments):
        command = [sys.executable, "-m", "dask", kind, "--scheduler-file", str(self.file)]
        where = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
        return subprocess.Popen(
            [*command, "--no-dashboard", *arguments],
            stdout=self._log,
            stderr=self._log,
            env=where,
            cwd=ROOT,
        )

    def stop(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
        for process in (*self.workers, self.scheduler):
            process.wait()
        self._log.close()


@contextmanager
def cluster(folder, n_workers):
    """Run a cluster for the time of a with statement."""
    made = Cluster(folder)
    try:
        made.start(n_workers)
        yield made
    finally:
        made.stop()
