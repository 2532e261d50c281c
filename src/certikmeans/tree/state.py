"""State from which a tree search can be resumed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.tree.node import Node, NodeResult
from certikmeans.tree.proof_tree import ProofTree


class CachedChild(NamedTuple):
    """Result of a child that was evaluated before its parent was branched.

    ``parent_index`` counts the open nodes from 0, then the children with results, in the order of
    the results: a child comes after its parent.
    """

    parent_index: int
    child_index: int  # 0 or 1
    result: NodeResult[Any]


@final
@dataclass(frozen=True, slots=True, eq=False)
class TreeState:
    """State of a tree between two nodes."""

    open_nodes: tuple[Node[Any], ...]
    n_taken: int  # nodes taken out of the queue so far
    proof_tree: ProofTree
    nodes: int  # bounded so far
    work: float  # units of work of these nodes, without the root
    next_number: int
    max_depth: int
    cutoff: float
    labels: NDArray[np.int64] | None  # (n_points,): the best labelling
    cached_children: tuple[CachedChild, ...]  # computed for this cutoff and these labels
