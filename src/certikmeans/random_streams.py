"""Random generators: one stream per name, all from the seed of the run.

A stream is told apart from all others by its name, not by a number that two modules may choose
alike; numbers beside the name tell apart what one module draws for one trial and for the next.
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
    "heuristics.jitter",  # centres moved slightly
    "heuristics.template",  # for the example
    "bounds.cluster.bundle",  # where ascents of the pricing start
    "bounds.partition.anticlusters",  # the order in which groups are dealt out
    "bounds.sdp.vectors",  # directions to begin with
    "presolve.colours",  # where eigenvectors and clusters of a graph begin
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
        What else the draw follows from, such as the number of the trial.

    Examples
    --------
    >>> same = generator(0, "heuristics.start", 2), generator(0, "heuristics.start", 2)
    >>> same[0].random() == same[1].random()
    True
    >>> generator(0, "heuristics.sample").random() == generator(0, "heuristics.jitter").random()
    False
    """
    if stream not in STREAMS:
        raise ValueError(f"{stream!r} is no random stream: add it to STREAMS")
    # The words of a spawn key are kept apart from those of the seed, however long that is.
    key = (stream_number(stream), *numbers)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def stream_number(stream: str) -> int:
    """Hash of a name: the same on every machine."""
    return crc32(stream.encode())
