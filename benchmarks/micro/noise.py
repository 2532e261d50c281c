"""Pairs of which some are wrong: how many have to be removed, and the time to find them."""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.pages import show
from certikmeans import Constraints
from certikmeans.generate import random_pairs

LIMIT_SECONDS = 15.0
FLIPPED = 0.02
SIZES = ((150, 3, 3_000), (500, 2, 3_000), (500, 3, 3_000), (1_000, 3, 3_000), (500, 8, 3_000))
LARGE = ((2_000, 3, 20_000), (20_000, 3, 100_000))


def noisy_pairs(n_points: int, n_classes: int, n_pairs: int, seed: int) -> tuple[Constraints, int]:
    """Pairs between points of equal classes and of different ones; 2 % have the wrong kind.

    >>> noisy_pairs(50, 2, 100, 0)
    (Constraints(50 must-links, 50 cannot-links, n_points=50), 2)
    """
    rng = np.random.default_rng(seed)
    classes = rng.integers(n_classes, size=n_points)
    half = n_pairs // 2
    must, cannot = random_pairs(classes, half, half, seed=seed)
    wrong = round(FLIPPED * half)
    pairs = Constraints.from_pairs(
        np.concatenate([must[wrong:], cannot[:wrong]]),
        np.concatenate([cannot[wrong:], must[:wrong]]),
        n_points,
    )
    return pairs, 2 * wrong


def main(options: argparse.Namespace) -> None:
    """Print a row per size."""
    lines = []
    for n_points, n_classes, n_pairs in SIZES[:1] if options.small else SIZES + LARGE:
        pairs, wrong = noisy_pairs(n_points, n_classes, n_pairs, options.seed)
        began = time.perf_counter()
        found = pairs.conflicts(n_classes, time_limit=LIMIT_SECONDS)
        seconds = time.perf_counter() - began
        limited = " (limit)" if not found.smallest else ""
        sizes = (f"{n_points:,}", n_classes, f"{n_pairs:,}", f"{wrong:,}")
        proven = (f"{found.size:,}", f"{found.least:,}", f"{seconds:.1f}{limited}")
        lines.append([*sizes, *proven])
    print(show(["points", "K", "pairs", "wrong", "removed", "at least", "seconds"], lines))
