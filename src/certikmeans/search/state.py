"""What a tree needs to go on: open nodes, books, counters, and what is known ahead of its turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.search.ledger import Ledger
from certikmeans.search.node import Answer, Node


class Known(NamedTuple):
    """An answer about a part whose turn has not come.

    ``of`` numbers the open nodes from 0 on, and then the parts that answers are known about, in
    the order of the answers: a part of a part comes after it.
    """

    of: int
    which: int  # 0 or 1
    answer: Answer[Any]


@final
@dataclass(frozen=True, slots=True, eq=False)
class SearchState:
    """A tree between two answers."""

    open_nodes: tuple[Node[Any], ...]
    taken: int  # nodes taken out of the store so far
    ledger: Ledger
    nodes: int  # bounded so far
    next_number: int
    deepest: int
    least_target: float
    labels: NDArray[np.int64] | None  # (n_points,): the best labelling
    known: tuple[Known, ...]  # with this target and this labelling
