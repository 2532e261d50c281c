"""Deciding whether one connected piece can be coloured, in bounded steps."""

from __future__ import annotations

from typing import Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.kernels.colouring.greedy import (
    gather_ball,
    greedy_saturation,
    induced_subgraph,
    peel,
)
from certikmeans.kernels.colouring.obstructions import (
    FOUND,
    greedy_clique,
    later_neighbors,
    scan_for_clique,
    smallest_last_order,
)
from certikmeans.kernels.colouring.search import (
    BEST,
    NO,
    YES,
    SearchState,
    TabuState,
    advance_search,
    advance_tabu,
    start_tabu,
)
from certikmeans.presolve.colour_spectrum import spectral_colours
from certikmeans.stop import StopSignal

Answer = Literal["yes", "no", "undecided"]

# Elementary steps per call of a kernel: some 10 ms, so that a stop signal is heard in time.
SLICE = 10_000_000
# The exact search keeps a set of levels per level: 32 MB at this size.
LARGEST_EXACT = 16_384
# Cliques are looked for at some length in sparse graphs, in dense ones as a quick try.
_CLIQUE_SLICES = 10
_CLIQUE_SEEDS = 64
# Tabu moves in phases, (sample, tenure): no setting is best for all sizes and densities. Chosen
# by trial on random graphs with a hidden 3-colouring, 2000 to 100,000 vertices, degree 4 to 20.
_TABU_PHASES = ((16, 60), (4, 10), (256, 60))

# Slices of searches before a guess at the colouring is computed.
_ROUNDS_WITHOUT_GUIDE = 8
# Then it has so many to show that it leads to fewer clashes than the search without it.
_ROUNDS_OF_TRIAL = 8


class SubGraph(NamedTuple):
    """A graph in compressed form, and what its vertices are called outside."""

    indptr: NDArray[np.int64]  # (n + 1,)
    neighbors: NDArray[np.int64]  # both directions
    vertices: NDArray[np.int64]  # (n,)

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.vertices)

    def restricted_to(self, inside: NDArray[np.int64]) -> SubGraph:
        """Return the subgraph on some vertices, given by their numbers here."""
        indptr, neighbors = induced_subgraph(self.indptr, self.neighbors, inside)
        return SubGraph(indptr, neighbors, self.vertices[inside])

    def core(self, n_colours: int) -> SubGraph:
        """Return what is left when vertices of degree below ``n_colours`` are peeled off."""
        alive = np.ones(self.size, dtype=np.bool_)
        peel(self.indptr, self.neighbors, n_colours, alive, np.empty(self.size, dtype=np.int64))
        return self if alive.all() else self.restricted_to(np.flatnonzero(alive))

    def edges(self) -> NDArray[np.int64]:
        """Every edge once, as rows of vertex numbers here, the smaller first."""
        tails = np.repeat(np.arange(self.size), np.diff(self.indptr))
        forward = tails < self.neighbors
        return np.stack([tails[forward], self.neighbors[forward]], axis=1)


def subgraph_from_edges(size: int, edges: NDArray[np.int64]) -> SubGraph:
    """Return the graph on ``0 .. size - 1`` with these edges (no loops, none twice).

    >>> subgraph_from_edges(3, np.array([[0, 2], [1, 2]])).neighbors
    array([2, 2, 0, 1])
    """
    tails = np.concatenate([edges[:, 0], edges[:, 1]])
    heads = np.concatenate([edges[:, 1], edges[:, 0]])
    order = np.lexsort((heads, tails))
    indptr = np.zeros(size + 1, dtype=np.int64)
    np.cumsum(np.bincount(tails, minlength=size), out=indptr[1:])
    return SubGraph(indptr, heads[order].astype(np.int64), np.arange(size, dtype=np.int64))


def find_clique(
    graph: SubGraph, size: int, stop: StopSignal, *, n_slices: int
) -> NDArray[np.int64] | None:
    """Return the numbers of ``size`` mutually adjacent vertices, or None if none was found.

    None proves nothing: hard neighbourhoods are given up, and time may have run out.
    """
    if size < 2 or graph.size < size:
        return None
    rank = np.empty(graph.size, dtype=np.int64)
    if smallest_last_order(graph.indptr, graph.neighbors, rank) < size - 1:
        return None
    late_indptr, late = later_neighbors(graph.indptr, graph.neighbors, rank)
    place = np.full(graph.size, -1, dtype=np.int64)
    clique = np.empty(size, dtype=np.int64)
    vertex = 0
    for _ in range(n_slices):
        if vertex == graph.size or stop.cause() is not None:
            break
        answer, vertex = scan_for_clique(late_indptr, late, size, vertex, place, SLICE, clique)
        if answer == FOUND:
            return np.sort(clique)
    return None


def _by_degree(graph: SubGraph) -> NDArray[np.int64]:
    return np.argsort(np.diff(graph.indptr), kind="stable")


def greedy_labels(graph: SubGraph, n_colours: int) -> NDArray[np.int64]:
    """Colour greedily by saturation; -1 marks the vertices for which no colour was left."""
    labels = np.empty(graph.size, dtype=np.int64)
    greedy_saturation(graph.indptr, graph.neighbors, n_colours, _by_degree(graph), labels)
    return labels


@final
class ExactSearch:
    """The exact search on one graph of moderate size; resumable."""

    def __init__(self, graph: SubGraph, n_colours: int) -> None:
        n = graph.size
        clique = np.empty(min(n, n_colours + 1), dtype=np.int64)
        seeds = _by_degree(graph)[::-1][:_CLIQUE_SEEDS]
        found = greedy_clique(graph.indptr, graph.neighbors, seeds, len(clique), clique)
        self._graph = graph
        self._state = SearchState(
            prefix=clique[:found].copy(),
            colour=np.zeros(n, dtype=np.int64),
            level=np.full(n, -1, dtype=np.int64),
            order=np.zeros(n, dtype=np.int64),
            used=np.zeros(n + 1, dtype=np.int64),
            counts=np.zeros((n, n_colours), dtype=np.int32),
            saturation=np.zeros(n, dtype=np.int64),
            weight=np.diff(graph.indptr),
            settled=np.zeros((n, n_colours), dtype=np.bool_),
            conflict=np.zeros((n, n // 64 + 1), dtype=np.uint64),
            touched=np.zeros(n, dtype=np.bool_),
            present=np.zeros(n_colours, dtype=np.bool_),
            depth=np.zeros(1, dtype=np.int64),
        )

    def advance(self, work: int) -> Answer:
        """Go on for about ``work`` elementary steps."""
        answer = advance_search(self._graph.indptr, self._graph.neighbors, self._state, work)
        return "yes" if answer == YES else "no" if answer == NO else "undecided"

    @property
    def labels(self) -> NDArray[np.int64]:
        """The proper colouring, after "yes"."""
        return self._state.colour

    @property
    def touched(self) -> NDArray[np.int64]:
        """After "no": vertices whose induced subgraph is already uncolourable.

        Every edge that the refutation used joins two of them.
        """
        return np.flatnonzero(self._state.touched)


@final
class TabuSearch:
    """A heuristic that finds colourings of large graphs and cannot prove that there is none."""

    def __init__(
        self, graph: SubGraph, n_colours: int, start: NDArray[np.int64] | None = None
    ) -> None:
        n = graph.size
        self._graph = graph
        self._state = TabuState(
            colour=greedy_labels(graph, n_colours) if start is None else start,
            counts=np.zeros((n, n_colours), dtype=np.int32),
            forbidden=np.zeros((n, n_colours), dtype=np.int64),
            clashing=np.zeros(n, dtype=np.int64),
            place=np.zeros(n, dtype=np.int64),
            numbers=np.zeros(5, dtype=np.int64),
        )
        start_tabu(graph.indptr, graph.neighbors, self._state)
        self._phase = 0
        self._left = self._phase_length()

    def _phase_length(self) -> int:
        """Slices of the current phase: more in later rounds and for larger graphs."""
        return (1 + self._graph.size // 2000) << (self._phase // len(_TABU_PHASES))

    def advance(self, work: int) -> Answer:
        """Go on for about ``work`` elementary steps."""
        if self._left == 0:
            self._phase += 1
            self._left = self._phase_length()
        self._left -= 1
        sample, tenure = _TABU_PHASES[self._phase % len(_TABU_PHASES)]
        answer = advance_tabu(
            self._graph.indptr, self._graph.neighbors, self._state, sample, tenure, work
        )
        return "yes" if answer == YES else "undecided"

    @property
    def labels(self) -> NDArray[np.int64]:
        """The current colouring; proper after "yes"."""
        return self._state.colour

    @property
    def fewest_clashes(self) -> int:
        """Pairs of neighbours that shared a colour at the best moment so far."""
        return int(self._state.numbers[BEST]) // 2

    @property
    def clashing_vertex(self) -> int:
        """A vertex with a neighbour of its own colour, while there is one."""
        return int(self._state.clashing[0])


@final
class PieceSearch:
    """Decides one piece: a clique that is too large, then exact and tabu search in turns.

    Pieces too large for the exact search are refuted, if at all, by a ball around a clash that
    the tabu search does not get rid of.
    """

    def __init__(self, graph: SubGraph, n_colours: int) -> None:
        self.graph = graph
        self._n_colours = n_colours
        self._tabu = TabuSearch(graph, n_colours)
        self._exact = ExactSearch(graph, n_colours) if graph.size <= LARGEST_EXACT else None
        self._guided: TabuSearch | None = None
        self._rounds = 0
        self._ball_size = 256
        self._looked_for_cliques = False
        self.labels: NDArray[np.int64] | None = None  # after "yes", in the piece's numbering
        self.witness: NDArray[np.int64] | None = None  # after "no": vertices, outside names

    def advance(self, stop: StopSignal) -> Answer:
        """Do one slice of each search."""
        if not self._looked_for_cliques:
            self._looked_for_cliques = True
            clique = find_clique(self.graph, self._n_colours + 1, stop, n_slices=_CLIQUE_SLICES)
            if clique is not None:
                return self._refuted_by(clique)
        if self._exact is not None:
            answer = self._exact.advance(SLICE)
            if answer == "yes":
                self.labels = self._exact.labels
                return answer
            if answer == "no":
                return self._refuted_by(self._exact.touched)
        for tabu in self._searches():
            if tabu.advance(SLICE) == "yes":
                self.labels = tabu.labels
                return "yes"
        return "undecided" if self._exact is not None else self._try_ball()

    def _searches(self) -> list[TabuSearch]:
        """The tabu search; where it does not come to an end soon, also one from a better start."""
        self._rounds += 1
        if self._rounds == _ROUNDS_WITHOUT_GUIDE:
            graph = self.graph
            guess = spectral_colours(graph.indptr, graph.neighbors, self._n_colours)
            if guess is not None:
                self._guided = TabuSearch(graph, self._n_colours, guess)
        trial_over = self._rounds == _ROUNDS_WITHOUT_GUIDE + _ROUNDS_OF_TRIAL
        # A guess that knows something has more clashes at first, and far fewer soon after.
        if (
            trial_over
            and self._guided is not None
            and 2 * self._guided.fewest_clashes >= self._tabu.fewest_clashes
        ):
            self._guided = None
        return [self._tabu] if self._guided is None else [self._guided, self._tabu]

    def _refuted_by(self, inside: NDArray[np.int64]) -> Answer:
        self.witness = self.graph.vertices[inside]
        return "no"

    def _try_ball(self) -> Answer:
        ball = np.empty(self._ball_size, dtype=np.int64)
        reached = np.zeros(self.graph.size, dtype=np.bool_)
        found = gather_ball(
            self.graph.indptr,
            self.graph.neighbors,
            self._tabu.clashing_vertex,
            self._ball_size,
            reached,
            ball,
        )
        local = self.graph.restricted_to(ball[:found]).core(self._n_colours)
        self._ball_size = min(2 * self._ball_size, LARGEST_EXACT)
        if local.size == 0:
            return "undecided"
        search = ExactSearch(local, self._n_colours)
        if search.advance(SLICE) != "no":
            return "undecided"
        self.witness = local.vertices[search.touched]
        return "no"
