"""A program whose runs are killed: each in a process of its own, with a real SIGKILL.

Started with the directory of the files and the number of runs as its arguments; prints one line of
JSON about every run.
"""

from __future__ import annotations

import json
import os
import signal
import sys

import numpy as np

from certikmeans import Problem, solve
from certikmeans.events import CheckpointOpportunity
from tests.checkpoint.cases import RUN_SETTINGS, clumps

# What a run is at when it is killed, mostly; runs take turns.
STAGES = {
    "tree": (clumps(), {**RUN_SETTINGS["sample, mixed"], "node_limit": 30}),
    "root": (clumps(), {"gap": 1e-6, "bound": "cluster", "node_limit": 1}),
    "exchange": (clumps(k=11), {"bound": "sample", "node_limit": 1}),
    "population": (clumps(n=60, k=5), {"bound": "sample", "node_limit": 1}),
    "parts": (
        Problem.from_data(np.random.default_rng(0).normal(size=(60, 12)), 3),
        {"bound": "partition", "node_limit": 1},
    ),
    "spectral": (
        Problem.from_data(np.random.default_rng(1).normal(size=(60, 12)), 3),
        {"bound": "spectral", "node_limit": 1},
    ),
}


def answer(stage, **more):
    """Solve the problem of a stage."""
    problem, settings = STAGES[stage]
    return solve(problem, jobs=1, **settings, **more)


class Counter:
    """Counts events; kills the process at one of them, or when the file is written."""

    def __init__(self, event=None, write=None):
        self.events = self.safe_points = self.writes = 0
        self.saved = [0]  # safe points up to every event
        self._event, self._write = event, write

    def __call__(self, event):
        self.events += 1
        self.safe_points += isinstance(event, CheckpointOpportunity)
        self.saved.append(self.safe_points)
        if self.events == self._event:
            os.kill(os.getpid(), signal.SIGKILL)

    def synchronise(self, descriptor):
        """In place of `os.fsync`: half of the file is there."""
        self.writes += 1
        if self.writes == self._write:
            os.truncate(descriptor, os.fstat(descriptor).st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)


def run(stage, path, counter, **more):
    os.fsync = counter.synchronise
    return answer(stage, checkpoint=path, checkpoint_interval=0, callbacks=[counter], **more)


def killed(stage, path, counter):
    """Run in a child; whether it was killed."""
    child = os.fork()
    if child == 0:
        run(stage, path, counter)
        os._exit(0)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


def main(folder, n_runs):
    rng = np.random.default_rng(0)
    whole = {stage: Counter() for stage in STAGES}
    for stage, counter in whole.items():
        run(stage, os.path.join(folder, stage), counter)
    # One run of every stage in three, or the second of two, is killed while it writes.
    period = min(3, n_runs // len(STAGES))
    for number in range(n_runs):
        stage = list(STAGES)[number % len(STAGES)]
        path = os.path.join(folder, f"state-{number}")
        write = number // len(STAGES) % period == period - 1
        while not os.path.exists(path):  # one that was killed before its first state has none
            most = whole[stage].writes if write else whole[stage].events
            at = int(rng.integers(2, most))
            was = killed(stage, path, Counter(write=at) if write else Counter(event=at))
        rest = Counter()
        result = run(stage, path, rest, resume=path)
        report = {
            "stage": stage,
            "killed": was,
            "at": at,
            "write": write,
            "safe_points": whole[stage].safe_points,
            "saved": at - 1 if write else whole[stage].saved[at - 1],
            "again": rest.safe_points,
            "nodes": result.nodes,
            "lower": result.lower_bound,
            "labels": result.labels.tolist(),
        }
        print(json.dumps(report), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
