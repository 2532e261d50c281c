"""Feasibility of the cannot-link graph: a proper K-coloring, or vertices that have none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from certikmeans.kernels.coloring.greedy import (
    bfs_ball,
    color_peeled,
    dsatur,
    induced_subgraph,
    peel,
    two_color,
)
from certikmeans.kernels.coloring.obstructions import (
    FOUND,
    greedy_clique,
    later_neighbors,
    scan_for_clique,
    smallest_last_order,
)
from certikmeans.kernels.coloring.search import (
    BEST,
    NO,
    YES,
    ExactColoringState,
    TabuColoringState,
    advance_search,
    advance_tabu,
    start_tabu,
)
from certikmeans.problem.label_constraints import CannotLinkGraph
from certikmeans.random_streams import generator
from certikmeans.stop import StopSignal

# Beyond this the eigenvectors take longer than the searches they help.
MAX_SPECTRAL_SIZE = 50_000
_N_RUNS, _MAX_LLOYD_STEPS = 5, 30
_EIGEN_TOL = 1e-2


def spectral_coloring(
    indptr: NDArray[np.int64], neighbors: NDArray[np.int64], n_colors: int
) -> NDArray[np.int64] | None:
    """Return a colour for every vertex, few of them in a clash; None where there is no guess.

    Parameters
    ----------
    indptr, neighbors : ndarray
        The graph in compressed form.
    n_colors : int
        K, at least 2.
    """
    n = len(indptr) - 1
    if not 2 <= n_colors < n - 1 or n > MAX_SPECTRAL_SIZE:
        return None
    from scipy.sparse import csr_array, diags_array
    from scipy.sparse.linalg import ArpackError, eigsh

    degrees = np.diff(indptr)
    root = -float(np.sqrt(degrees.mean()))
    links = csr_array((np.ones(len(neighbors)), neighbors, indptr), shape=(n, n))
    matrix = diags_array(degrees + (root * root - 1.0)) - root * links
    rng = generator(0, "presolve.colours")
    try:
        _, embedding = eigsh(
            matrix.tocsr(), n_colors - 1, which="SA", tol=_EIGEN_TOL, v0=rng.normal(size=n)
        )
    except ArpackError:  # not converged: no guess
        return None
    tails = np.repeat(np.arange(n), degrees)
    guesses = [_kmeans(embedding, n_colors, rng) for _ in range(_N_RUNS)]
    return min(guesses, key=lambda guess: np.count_nonzero(guess[tails] == guess[neighbors]))


def _kmeans(
    embedding: NDArray[np.float64], n_clusters: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """A few steps of Lloyd from seeds that are drawn far apart."""
    squares = np.einsum("ij,ij->i", embedding, embedding)

    def squared_distances_to(center: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(np.maximum(squares - 2.0 * embedding @ center + center @ center, 0.0))

    centers = [embedding[rng.integers(len(embedding))]]
    nearest = squared_distances_to(centers[0])
    while len(centers) < n_clusters:
        probabilities = nearest / nearest.sum() if nearest.sum() > 0.0 else None
        centers.append(embedding[rng.choice(len(embedding), p=probabilities)])
        nearest = np.minimum(nearest, squared_distances_to(centers[-1]))
    means = np.stack(centers)
    labels = np.zeros(len(embedding), dtype=np.int64)
    for _ in range(_MAX_LLOYD_STEPS):
        before = labels
        labels = np.argmin(np.einsum("ij,ij->i", means, means) - 2.0 * embedding @ means.T, axis=1)
        if np.array_equal(labels, before):
            break
        for k in np.unique(labels):
            means[k] = embedding[labels == k].mean(axis=0)
    return labels.astype(np.int64)


# Deciding whether one connected piece can be coloured, in bounded steps.

Colorability = Literal["yes", "no", "undecided"]

# Elementary steps per call of a kernel: some 10 ms, so that a stop signal is heard in time.
WORK_PER_CALL = 10_000_000
# The exact search keeps a set of levels per level: 32 MB at this size.
MAX_EXACT_SIZE = 16_384
# Cliques are looked for at some length in sparse graphs, in dense ones as a quick try.
_CLIQUE_CALLS = 10
_CLIQUE_SEEDS = 64
# Tabu moves in phases, (sample, tenure): no setting is best for all sizes and densities. Chosen
# by trial on random graphs with a hidden 3-colouring, 2000 to 100,000 vertices, degree 4 to 20.
_TABU_PHASES = ((16, 60), (4, 10), (256, 60))

# Slices of searches before a guess at the colouring is computed.
_ROUNDS_BEFORE_SPECTRAL = 8
# Then it has so many to show that it leads to fewer clashes than the search without it.
_SPECTRAL_TRIAL_ROUNDS = 8


class SubGraph(NamedTuple):
    """A graph in compressed form, and what its vertices are called outside."""

    indptr: NDArray[np.int64]  # (n + 1,)
    neighbors: NDArray[np.int64]  # both directions
    vertices: NDArray[np.int64]  # (n,)

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.vertices)

    def induced(self, inside: NDArray[np.int64]) -> SubGraph:
        """Return the subgraph on some vertices, given by their numbers here."""
        indptr, neighbors = induced_subgraph(self.indptr, self.neighbors, inside)
        return SubGraph(indptr, neighbors, self.vertices[inside])

    def core(self, n_colors: int) -> SubGraph:
        """Return what is left when vertices of degree below ``n_colors`` are peeled off."""
        alive = np.ones(self.size, dtype=np.bool_)
        peel(self.indptr, self.neighbors, n_colors, alive, np.empty(self.size, dtype=np.int64))
        return self if alive.all() else self.induced(np.flatnonzero(alive))

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
    graph: SubGraph, size: int, stop: StopSignal, *, max_calls: int
) -> NDArray[np.int64] | None:
    """Return the numbers of ``size`` mutually adjacent vertices, or None if none was found.

    None proves nothing: hard neighbourhoods are given up, and time may have run out.
    """
    if size < 2 or graph.size < size:
        return None
    rank = np.empty(graph.size, dtype=np.int64)
    if smallest_last_order(graph.indptr, graph.neighbors, rank) < size - 1:
        return None
    later_indptr, later = later_neighbors(graph.indptr, graph.neighbors, rank)
    position = np.full(graph.size, -1, dtype=np.int64)
    clique = np.empty(size, dtype=np.int64)
    vertex = 0
    for _ in range(max_calls):
        if vertex == graph.size or stop.reason() is not None:
            break
        answer, vertex = scan_for_clique(
            later_indptr, later, size, vertex, position, WORK_PER_CALL, clique
        )
        if answer == FOUND:
            return np.sort(clique)
    return None


def _by_degree(graph: SubGraph) -> NDArray[np.int64]:
    return np.argsort(np.diff(graph.indptr), kind="stable")


def dsatur_labels(graph: SubGraph, n_colors: int) -> NDArray[np.int64]:
    """Colour greedily by saturation; -1 marks the vertices for which no colour was left."""
    labels = np.empty(graph.size, dtype=np.int64)
    dsatur(graph.indptr, graph.neighbors, n_colors, _by_degree(graph), labels)
    return labels


@final
class ExactColoring:
    """The exact search on one graph of moderate size; resumable."""

    def __init__(self, graph: SubGraph, n_colors: int) -> None:
        n = graph.size
        clique = np.empty(min(n, n_colors + 1), dtype=np.int64)
        seeds = _by_degree(graph)[::-1][:_CLIQUE_SEEDS]
        found = greedy_clique(graph.indptr, graph.neighbors, seeds, len(clique), clique)
        self._graph = graph
        self._state = ExactColoringState(
            prefix=clique[:found].copy(),
            color=np.zeros(n, dtype=np.int64),
            level=np.full(n, -1, dtype=np.int64),
            order=np.zeros(n, dtype=np.int64),
            used=np.zeros(n + 1, dtype=np.int64),
            counts=np.zeros((n, n_colors), dtype=np.int32),
            saturation=np.zeros(n, dtype=np.int64),
            weight=np.diff(graph.indptr),
            excluded=np.zeros((n, n_colors), dtype=np.bool_),
            conflict=np.zeros((n, n // 64 + 1), dtype=np.uint64),
            core_vertices=np.zeros(n, dtype=np.bool_),
            present=np.zeros(n_colors, dtype=np.bool_),
            depth=np.zeros(1, dtype=np.int64),
        )

    def advance(self, work: int) -> Colorability:
        """Go on for about ``work`` elementary steps."""
        answer = advance_search(self._graph.indptr, self._graph.neighbors, self._state, work)
        return "yes" if answer == YES else "no" if answer == NO else "undecided"

    @property
    def labels(self) -> NDArray[np.int64]:
        """The proper colouring, after "yes"."""
        return self._state.color

    @property
    def core_vertices(self) -> NDArray[np.int64]:
        """After "no": vertices whose induced subgraph is already uncolourable.

        Every edge that the refutation used joins two of them.
        """
        return np.flatnonzero(self._state.core_vertices)


@final
class TabuColoring:
    """A heuristic that finds colourings of large graphs and cannot prove that there is none."""

    def __init__(
        self, graph: SubGraph, n_colors: int, start: NDArray[np.int64] | None = None
    ) -> None:
        n = graph.size
        self._graph = graph
        self._state = TabuColoringState(
            color=dsatur_labels(graph, n_colors) if start is None else start,
            counts=np.zeros((n, n_colors), dtype=np.int32),
            forbidden=np.zeros((n, n_colors), dtype=np.int64),
            conflicting=np.zeros(n, dtype=np.int64),
            position=np.zeros(n, dtype=np.int64),
            counters=np.zeros(5, dtype=np.int64),
        )
        start_tabu(graph.indptr, graph.neighbors, self._state)
        self._phase = 0
        self._left = self._phase_length()

    def _phase_length(self) -> int:
        """Slices of the current phase: more in later rounds and for larger graphs."""
        return (1 + self._graph.size // 2000) << (self._phase // len(_TABU_PHASES))

    def advance(self, work: int) -> Colorability:
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
        return self._state.color

    @property
    def min_conflicts(self) -> int:
        """Pairs of neighbours that shared a colour at the best moment so far."""
        return int(self._state.counters[BEST]) // 2

    @property
    def conflicting_vertex(self) -> int:
        """A vertex with a neighbour of its own colour, while there is one."""
        return int(self._state.conflicting[0])


@final
class ComponentColoring:
    """Decides one piece: a clique that is too large, then exact and tabu search in turns.

    Pieces too large for the exact search are refuted, if at all, by a ball around a clash that
    the tabu search does not get rid of.
    """

    def __init__(self, graph: SubGraph, n_colors: int) -> None:
        self.graph = graph
        self._n_colours = n_colors
        self._tabu = TabuColoring(graph, n_colors)
        self._exact = ExactColoring(graph, n_colors) if graph.size <= MAX_EXACT_SIZE else None
        self._spectral_tabu: TabuColoring | None = None
        self._rounds = 0
        self._ball_size = 256
        self._clique_searched = False
        self.labels: NDArray[np.int64] | None = None  # after "yes", in the piece's numbering
        self.uncolorable_vertices: NDArray[np.int64] | None = (
            None  # after "no": vertices, outside names
        )

    def advance(self, stop: StopSignal) -> Colorability:
        """Do one slice of each search."""
        if not self._clique_searched:
            self._clique_searched = True
            clique = find_clique(self.graph, self._n_colours + 1, stop, max_calls=_CLIQUE_CALLS)
            if clique is not None:
                return self._refute(clique)
        if self._exact is not None:
            answer = self._exact.advance(WORK_PER_CALL)
            if answer == "yes":
                self.labels = self._exact.labels
                return answer
            if answer == "no":
                return self._refute(self._exact.core_vertices)
        for tabu in self._tabu_searches():
            if tabu.advance(WORK_PER_CALL) == "yes":
                self.labels = tabu.labels
                return "yes"
        return "undecided" if self._exact is not None else self._refute_ball()

    def _tabu_searches(self) -> list[TabuColoring]:
        """The tabu search; where it does not come to an end soon, also one from a better start."""
        self._rounds += 1
        if self._rounds == _ROUNDS_BEFORE_SPECTRAL:
            graph = self.graph
            guess = spectral_coloring(graph.indptr, graph.neighbors, self._n_colours)
            if guess is not None:
                self._spectral_tabu = TabuColoring(graph, self._n_colours, guess)
        trial_over = self._rounds == _ROUNDS_BEFORE_SPECTRAL + _SPECTRAL_TRIAL_ROUNDS
        # A guess that knows something has more clashes at first, and far fewer soon after.
        if (
            trial_over
            and self._spectral_tabu is not None
            and 2 * self._spectral_tabu.min_conflicts >= self._tabu.min_conflicts
        ):
            self._spectral_tabu = None
        return [self._tabu] if self._spectral_tabu is None else [self._spectral_tabu, self._tabu]

    def _refute(self, inside: NDArray[np.int64]) -> Colorability:
        self.uncolorable_vertices = self.graph.vertices[inside]
        return "no"

    def _refute_ball(self) -> Colorability:
        ball = np.empty(self._ball_size, dtype=np.int64)
        reached = np.zeros(self.graph.size, dtype=np.bool_)
        found = bfs_ball(
            self.graph.indptr,
            self.graph.neighbors,
            self._tabu.conflicting_vertex,
            self._ball_size,
            reached,
            ball,
        )
        local = self.graph.induced(ball[:found]).core(self._n_colours)
        self._ball_size = min(2 * self._ball_size, MAX_EXACT_SIZE)
        if local.size == 0:
            return "undecided"
        search = ExactColoring(local, self._n_colours)
        if search.advance(WORK_PER_CALL) != "no":
            return "undecided"
        self.uncolorable_vertices = local.vertices[search.core_vertices]
        return "no"


# Is there a labelling at all? A proper K-colouring of the cannot-link graph, or the culprit.


@final
@dataclass(frozen=True, slots=True, eq=False)
class ColoringResult:
    """The answer to "can the groups be told apart with K labels?", with its evidence.

    "undecided" is an honest third answer: the time ran out on a hard component.
    """

    answer: Colorability
    labels: NDArray[np.int64] | None = None  # "yes": a proper colouring; free vertices are 0
    component: int = -1  # "no": the culprit; "undecided": the first component left open
    uncolorable_vertices: NDArray[np.int64] | None = (
        None  # "no": vertices that cannot be coloured by themselves
    )


def find_coloring(graph: CannotLinkGraph, n_clusters: int, stop: StopSignal) -> ColoringResult:
    """Colour the cannot-link graph with ``n_clusters`` colours, or find out that none exists.

    Bipartite components are coloured by parity. Elsewhere vertices with fewer than K neighbours
    are peeled off, as they can always be coloured last; the core is coloured greedily, and the
    pieces on which that fails are searched exactly. All but the last step takes linear time.

    Parameters
    ----------
    graph : CannotLinkGraph
        Cannot-links between groups.
    n_clusters : int
        Number of colours, K.
    stop : StopSignal
        Limits the exact search only.

    Returns
    -------
    Colouring

    Examples
    --------
    >>> from certikmeans.problem.graph_builder import build_cannot_link_graph
    >>> triangle, _ = build_cannot_link_graph(4, np.array([[0, 1], [1, 2], [0, 2]]))
    >>> find_coloring(triangle, 2, StopSignal()).answer
    'no'
    >>> find_coloring(triangle, 3, StopSignal()).labels.tolist()
    [2, 1, 0, 0]
    """
    labels = np.zeros(graph.n_vertices, dtype=np.int64)
    if graph.n_components == 0:
        return ColoringResult("yes", labels)
    if n_clusters == 1:
        return ColoringResult(
            "no", component=0, uncolorable_vertices=np.array([0, graph.neighbors[0]])
        )
    odd = np.zeros(graph.n_components, dtype=np.bool_)
    first_odd = two_color(
        graph.indptr,
        graph.neighbors,
        graph.starts,
        graph.parents,
        graph.n_extra_edges,
        labels,
        odd,
    )
    if first_odd < 0:
        return ColoringResult("yes", labels)
    if n_clusters == 2:
        inside = np.arange(graph.starts[first_odd], graph.starts[first_odd + 1])
        return ColoringResult("no", component=int(first_odd), uncolorable_vertices=inside)
    return _color_odd_components(graph, n_clusters, stop, labels, odd)


def _color_odd_components(
    graph: CannotLinkGraph,
    n_clusters: int,
    stop: StopSignal,
    labels: NDArray[np.int64],
    odd: NDArray[np.bool_],
) -> ColoringResult:
    alive = np.zeros(graph.n_vertices, dtype=np.bool_)
    alive[: graph.n_linked] = np.repeat(odd, np.diff(graph.starts))
    peeled = np.empty(graph.n_vertices, dtype=np.int64)
    n_peeled = peel(graph.indptr, graph.neighbors, n_clusters, alive, peeled)
    whole = SubGraph(graph.indptr, graph.neighbors, np.arange(graph.n_vertices))
    core = whole.induced(np.flatnonzero(alive))

    core_labels = dsatur_labels(core, n_clusters)
    searches = [
        ComponentColoring(piece, n_clusters) for piece in _uncolored_components(core, core_labels)
    ]
    labels[core.vertices] = core_labels
    while searches:
        still_open = []
        for search in searches:
            if stop.reason() is not None:
                still_open.append(search)
                continue
            answer = search.advance(stop)
            if answer == "no":
                assert search.uncolorable_vertices is not None
                return ColoringResult(
                    "no",
                    component=_component_of(graph, search.uncolorable_vertices[:1]),
                    uncolorable_vertices=np.sort(search.uncolorable_vertices),
                )
            if answer == "yes":
                assert search.labels is not None
                labels[search.graph.vertices] = search.labels
            else:
                still_open.append(search)
        searches = still_open
        if searches and stop.reason() is not None:
            open_vertices = np.concatenate([search.graph.vertices[:1] for search in searches])
            return ColoringResult("undecided", component=_component_of(graph, open_vertices))
    color_peeled(graph.indptr, graph.neighbors, n_clusters, peeled[:n_peeled], labels)
    return ColoringResult("yes", labels)


def _uncolored_components(core: SubGraph, labels: NDArray[np.int64]) -> list[SubGraph]:
    """Connected pieces of the core on which the greedy colouring failed, small ones first."""
    reached = np.zeros(core.size, dtype=np.bool_)
    buffer = np.empty(core.size, dtype=np.int64)
    pieces = []
    for seed in np.flatnonzero(labels < 0):
        if not reached[seed]:
            size = bfs_ball(core.indptr, core.neighbors, seed, core.size, reached, buffer)
            pieces.append(core.induced(np.sort(buffer[:size])))
    return sorted(pieces, key=lambda piece: piece.size)


def _component_of(graph: CannotLinkGraph, vertices: NDArray[np.int64]) -> int:
    """Return the smallest number of a component that holds one of the vertices."""
    return int(np.searchsorted(graph.starts, vertices, side="right").min()) - 1
