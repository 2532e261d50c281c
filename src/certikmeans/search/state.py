"""What a tree needs to go on: open nodes, books, counters, and the round that is under way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from certikmeans.search.ledger import Ledger
from certikmeans.search.node import Answer, Node


@final
@dataclass(frozen=True, slots=True, eq=False)
class SearchState:
    """A tree between two answers."""

    open_nodes: tuple[Node[Any], ...]
    rounds: int
    ledger: Ledger
    nodes: int  # bounded so far
    next_number: int
    deepest: int
    least_target: float
    split: tuple[Node[Any], ...]  # those whose parts are being bounded
    answers: dict[int, Answer[Any]]  # about some of these parts already, by number
