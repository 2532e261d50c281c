"""A program whose runs are killed: each in a process of its own, with a real SIGKILL.

Started with the directory of the files as its argument; prints one line of JSON about every run.
"""

from __future__ import annotations

import json
import os
import signal
import sys

import numpy as np

from certikmeans import solve
from certikmeans.events import SafePoint
from tests.checkpoint.cases import COURSES, clumps

RUNS = 20
SETTINGS = {**COURSES["sample, mixed"], "node_limit": 30, "jobs": 1}


class Counter:
    """Counts events; kills the process at one of them, or when the file is written."""

    def __init__(self, event=None, write=None):
        self.events = self.safe_points = self.writes = 0
        self._event, self._write = event, write

    def __call__(self, event):
        self.events += 1
        self.safe_points += isinstance(event, SafePoint)
        if self.events == self._event:
            os.kill(os.getpid(), signal.SIGKILL)

    def synchronise(self, descriptor):
        """In place of `os.fsync`: half of the file is there."""
        self.writes += 1
        if self.writes == self._write:
            os.truncate(descriptor, os.fstat(descriptor).st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)


def run(path, counter, **more):
    os.fsync = counter.synchronise
    return solve(
        clumps(), checkpoint=path, checkpoint_interval=0, callbacks=[counter], **SETTINGS, **more
    )


def killed(path, counter, **more):
    """Run in a child; whether it was killed."""
    child = os.fork()
    if child == 0:
        run(path, counter, **more)
        os._exit(0)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


def main(folder):
    rng = np.random.default_rng(0)
    whole = Counter()
    run(os.path.join(folder, "whole"), whole)
    for number in range(RUNS):
        path = os.path.join(folder, f"state-{number}")
        while not os.path.exists(path):  # one that was killed before its first state has none
            write = number % 4 == 3
            at = int(rng.integers(2, whole.writes if write else whole.events))
            was = killed(path, Counter(write=at) if write else Counter(event=at))
        rest = Counter()
        result = run(path, rest, resume=path)
        told = {
            "killed": was,
            "at": at,
            "write": write,
            "safe_points": [whole.safe_points, rest.safe_points],
            "nodes": result.nodes,
            "lower": result.lower_bound,
            "labels": result.labels.tolist(),
        }
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
