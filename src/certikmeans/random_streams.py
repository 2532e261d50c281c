"""Random generators: one stream per name, all derived from the seed of the run.

Streams are identified by name, not by a number that two modules might both choose; additional
numbers distinguish the trials of one module.
"""

from __future__ import annotations

from zlib import crc32

import numpy as np

# Every name in use. A new stream gets a line here; a test compares their hashes.
STREAMS = (
    "heuristics.start",  # starting centres, by trial
    "heuristics.population",  # parents and mutations, by number of starts
    "heuristics.exchange",  # which centres are swapped, by trial
    "heuristics.sample",  # the sample of large data
    "heuristics.jitter",  # noise on centres
    "heuristics.template",  # the template
    "assignment.annealing",  # annealed labels, by trial
    "bounds.cluster.bundle",  # starting points of pricing ascents
    "bounds.partition.anticlusters",  # the order in which groups are distributed
    "bounds.sdp.size_cuts",  # sets of groups that may violate a size cut
    "bounds.sdp.vectors",  # initial vectors
    "presolve.colours",  # initial vectors and seeds of spectral colorings
)


def generator(seed: int, stream: str, *numbers: int) -> np.random.Generator:
    """Return the random generator of a stream.

    Parameters
    ----------
    seed : int
        Of the run.
    stream : str
        One of `STREAMS`.
    *numbers : int
        Further identification, such as the number of the trial.

    Examples
    --------
    >>> same = generator(0, "heuristics.start", 2), generator(0, "heuristics.start", 2)
    >>> same[0].random() == same[1].random()
    True
    >>> generator(0, "heuristics.sample").random() == generator(0, "heuristics.jitter").random()
    False
    """
    if stream not in STREAMS:
        raise ValueError(f"{stream!r} is not a random stream: add it to STREAMS")
    # SeedSequence keeps the words of a spawn key separate from those of the seed.
    key = (stream_number(stream), *numbers)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def stream_number(stream: str) -> int:
    """Platform-independent hash of a name."""
    return crc32(stream.encode())
