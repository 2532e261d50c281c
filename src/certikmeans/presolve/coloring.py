"""Feasibility: a proper K-coloring of the cannot-link graph, or vertices that have none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, final

import numpy as np

from certikmeans._types import Floats, Ints, Mask
from certikmeans.constraint_model.cannot_links import CannotLinkGraph
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
from certikmeans.random_streams import generator
from certikmeans.stop import StopSignal


@final
@dataclass(frozen=True, slots=True)
class ColoringParams:
    """Settings of the coloring searches."""

    # Elementary steps per kernel call: some 10 ms, so that a stop signal is noticed in time.
    work_per_call: int = 10_000_000
    max_exact_size: int = 16_384  # vertices; the exact search needs 32 MB of conflict sets then
    # A clique search is thorough in sparse graphs, and a quick attempt in dense ones.
    clique_calls: int = 10
    clique_seeds: int = 64
    # Tabu search in phases (sample, tenure): no setting is best for all sizes and densities. Chosen
    # by trial on random graphs with a planted 3-coloring, 2000 to 100,000 vertices, degree 4 to 20.
    tabu_phases: tuple[tuple[int, int], ...] = ((16, 60), (4, 10), (256, 60))
    initial_ball_size: int = 256  # vertices around a conflict that are searched exactly
    # Rounds of searches before a spectral guess; then rounds in which the search from the guess
    # has to reach fewer conflicts than the search without it.
    rounds_before_spectral: int = 8
    spectral_trial_rounds: int = 8
    max_spectral_size: int = 50_000  # vertices; above, eigenvectors take longer than they save
    # Uncolored vertices from which on labels near the points are tried first: below, the exact
    # search takes less time.
    min_guess_size: int = 200
    spectral_runs: int = 5  # k-means runs on the embedding
    spectral_lloyd_steps: int = 30
    eigen_tolerance: float = 1e-2

    def __post_init__(self) -> None:
        if not self.tabu_phases or self.work_per_call < 1 or self.initial_ball_size < 1:
            raise ValueError("tabu_phases, work_per_call and initial_ball_size must be positive")


DEFAULT_PARAMS = ColoringParams()


def spectral_coloring(
    indptr: Ints,
    neighbors: Ints,
    n_colors: int,
    params: ColoringParams = DEFAULT_PARAMS,
) -> Ints | None:
    """Guess a coloring with few conflicts from eigenvectors, or return None.

    Parameters
    ----------
    indptr, neighbors : ndarray
        The graph in compressed form.
    n_colors : int
        K, at least 2.
    """
    n = len(indptr) - 1
    if not 2 <= n_colors < n - 1 or n > params.max_spectral_size:
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
            matrix.tocsr(),
            n_colors - 1,
            which="SA",
            tol=params.eigen_tolerance,
            v0=rng.normal(size=n),
        )
    except ArpackError:  # not converged: no guess
        return None
    tails = np.repeat(np.arange(n), degrees)
    steps = params.spectral_lloyd_steps
    guesses = [_kmeans(embedding, n_colors, steps, rng) for _ in range(params.spectral_runs)]
    return min(guesses, key=lambda guess: np.count_nonzero(guess[tails] == guess[neighbors]))


def _kmeans(embedding: Floats, n_clusters: int, max_steps: int, rng: np.random.Generator) -> Ints:
    """A few Lloyd steps from k-means++ seeds."""
    squares = np.einsum("ij,ij->i", embedding, embedding)

    def squared_distances_to(center: Floats) -> Floats:
        return np.asarray(np.maximum(squares - 2.0 * embedding @ center + center @ center, 0.0))

    centers = [embedding[rng.integers(len(embedding))]]
    nearest = squared_distances_to(centers[0])
    while len(centers) < n_clusters:
        probabilities = nearest / nearest.sum() if nearest.sum() > 0.0 else None
        centers.append(embedding[rng.choice(len(embedding), p=probabilities)])
        nearest = np.minimum(nearest, squared_distances_to(centers[-1]))
    means = np.stack(centers)
    labels = np.zeros(len(embedding), dtype=np.int64)
    for _ in range(max_steps):
        before = labels
        labels = np.argmin(np.einsum("ij,ij->i", means, means) - 2.0 * embedding @ means.T, axis=1)
        if np.array_equal(labels, before):
            break
        for k in np.unique(labels):
            means[k] = embedding[labels == k].mean(axis=0)
    return labels.astype(np.int64)


# Colorability of one connected component, in bounded steps.

Colorability = Literal["yes", "no", "undecided"]


class SubGraph(NamedTuple):
    """A graph in compressed form, with the outer names of its vertices."""

    indptr: Ints  # (n + 1,)
    neighbors: Ints  # both directions
    vertices: Ints  # (n,)

    @property
    def size(self) -> int:
        """Number of vertices."""
        return len(self.vertices)

    def induced(self, inside: Ints) -> SubGraph:
        """Return the subgraph on some vertices, given by their numbers here."""
        indptr, neighbors = induced_subgraph(self.indptr, self.neighbors, inside)
        return SubGraph(indptr, neighbors, self.vertices[inside])

    def core(self, n_colors: int) -> SubGraph:
        """Return the ``n_colors``-core: vertices of lower degree are removed repeatedly."""
        alive = np.ones(self.size, dtype=np.bool_)
        peel(self.indptr, self.neighbors, n_colors, alive, np.empty(self.size, dtype=np.int64))
        return self if alive.all() else self.induced(np.flatnonzero(alive))

    def edges(self) -> Ints:
        """Every edge once, as rows of vertex numbers here, the smaller first."""
        tails = np.repeat(np.arange(self.size), np.diff(self.indptr))
        forward = tails < self.neighbors
        return np.stack([tails[forward], self.neighbors[forward]], axis=1)


def subgraph_from_edges(size: int, edges: Ints) -> SubGraph:
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
    graph: SubGraph,
    size: int,
    stop: StopSignal,
    *,
    max_calls: int,
    params: ColoringParams = DEFAULT_PARAMS,
) -> Ints | None:
    """Return the numbers of ``size`` mutually adjacent vertices, or None if none was found.

    None proves nothing: hard neighbourhoods are skipped, and time may have run out.
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
            later_indptr, later, size, vertex, position, params.work_per_call, clique
        )
        if answer == FOUND:
            return np.sort(clique)
    return None


def _by_degree(graph: SubGraph) -> Ints:
    return np.argsort(np.diff(graph.indptr), kind="stable")


def dsatur_labels(graph: SubGraph, n_colors: int) -> Ints:
    """Color greedily by saturation; -1 marks vertices without a remaining color."""
    labels = np.empty(graph.size, dtype=np.int64)
    dsatur(graph.indptr, graph.neighbors, n_colors, _by_degree(graph), labels)
    return labels


@final
class ExactColoring:
    """Exact search on one graph of moderate size; resumable."""

    def __init__(
        self, graph: SubGraph, n_colors: int, params: ColoringParams = DEFAULT_PARAMS
    ) -> None:
        n = graph.size
        clique = np.empty(min(n, n_colors + 1), dtype=np.int64)
        seeds = _by_degree(graph)[::-1][: params.clique_seeds]
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
        """Continue for about ``work`` elementary steps."""
        answer = advance_search(self._graph.indptr, self._graph.neighbors, self._state, work)
        return "yes" if answer == YES else "no" if answer == NO else "undecided"

    @property
    def labels(self) -> Ints:
        """The proper coloring, after "yes"."""
        return self._state.color

    @property
    def core_vertices(self) -> Ints:
        """After "no": vertices whose induced subgraph is not colorable.

        Every edge that the refutation used joins two of them.
        """
        return np.flatnonzero(self._state.core_vertices)


@final
class TabuColoring:
    """Tabu search for a coloring of large graphs; it cannot prove that there is none."""

    def __init__(
        self,
        graph: SubGraph,
        n_colors: int,
        start: Ints | None = None,
        params: ColoringParams = DEFAULT_PARAMS,
    ) -> None:
        n = graph.size
        self._graph = graph
        self._phases = params.tabu_phases
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
        """Calls in the current phase: more in later rounds and for larger graphs."""
        return (1 + self._graph.size // 2000) << (self._phase // len(self._phases))

    def advance(self, work: int) -> Colorability:
        """Continue for about ``work`` elementary steps."""
        if self._left == 0:
            self._phase += 1
            self._left = self._phase_length()
        self._left -= 1
        sample, tenure = self._phases[self._phase % len(self._phases)]
        answer = advance_tabu(
            self._graph.indptr, self._graph.neighbors, self._state, sample, tenure, work
        )
        return "yes" if answer == YES else "undecided"

    @property
    def labels(self) -> Ints:
        """The current coloring; proper after "yes"."""
        return self._state.color

    @property
    def min_conflicts(self) -> int:
        """Smallest number of conflicting edges so far."""
        return int(self._state.counters[BEST]) // 2

    @property
    def conflicting_vertex(self) -> int:
        """A vertex with a neighbour of its own color, while there is one."""
        return int(self._state.conflicting[0])


@final
class ComponentColoring:
    """Decides one component: a clique that is too large, then exact and tabu search in turns.

    Components too large for the exact search are refuted, if at all, by a ball around a conflict
    that the tabu search does not resolve.
    """

    def __init__(
        self, graph: SubGraph, n_colors: int, params: ColoringParams = DEFAULT_PARAMS
    ) -> None:
        self.graph = graph
        self._params = params
        self._n_colors = n_colors
        self._tabu = TabuColoring(graph, n_colors, params=params)
        small = graph.size <= params.max_exact_size
        self._exact = ExactColoring(graph, n_colors, params) if small else None
        self._spectral_tabu: TabuColoring | None = None
        self._rounds = 0
        self._ball_size = params.initial_ball_size
        self._clique_searched = False
        self.labels: Ints | None = None  # after "yes", by vertex number here
        # After "no": vertices by their outer names.
        self.uncolorable_vertices: Ints | None = None

    def advance(self, stop: StopSignal) -> Colorability:
        """Run one call of each search."""
        params = self._params
        if not self._clique_searched:
            self._clique_searched = True
            size, max_calls = self._n_colors + 1, params.clique_calls
            clique = find_clique(self.graph, size, stop, max_calls=max_calls, params=params)
            if clique is not None:
                return self._refute(clique)
        if self._exact is not None:
            answer = self._exact.advance(params.work_per_call)
            if answer == "yes":
                self.labels = self._exact.labels
                return answer
            if answer == "no":
                return self._refute(self._exact.core_vertices)
        for tabu in self._tabu_searches():
            if tabu.advance(params.work_per_call) == "yes":
                self.labels = tabu.labels
                return "yes"
        return "undecided" if self._exact is not None else self._refute_ball()

    def _tabu_searches(self) -> list[TabuColoring]:
        """The tabu search; after some rounds also one from a spectral guess."""
        params = self._params
        self._rounds += 1
        if self._rounds == params.rounds_before_spectral:
            graph = self.graph
            guess = spectral_coloring(graph.indptr, graph.neighbors, self._n_colors, params)
            if guess is not None:
                self._spectral_tabu = TabuColoring(graph, self._n_colors, guess, params)
        trial_end = params.rounds_before_spectral + params.spectral_trial_rounds
        # A useful guess has more conflicts at first, and far fewer soon after.
        if (
            self._rounds == trial_end
            and self._spectral_tabu is not None
            and 2 * self._spectral_tabu.min_conflicts >= self._tabu.min_conflicts
        ):
            self._spectral_tabu = None
        return [self._tabu] if self._spectral_tabu is None else [self._spectral_tabu, self._tabu]

    def _refute(self, inside: Ints) -> Colorability:
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
        local = self.graph.induced(ball[:found]).core(self._n_colors)
        self._ball_size = min(2 * self._ball_size, self._params.max_exact_size)
        if local.size == 0:
            return "undecided"
        search = ExactColoring(local, self._n_colors, self._params)
        if search.advance(self._params.work_per_call) != "no":
            return "undecided"
        self.uncolorable_vertices = local.vertices[search.core_vertices]
        return "no"


@final
@dataclass(frozen=True, slots=True, eq=False)
class ColoringResult:
    """Whether the cannot-link graph has a proper K-coloring, with evidence.

    "undecided" means that the time ran out on a hard component.
    """

    answer: Colorability
    labels: Ints | None = None  # "yes": a proper coloring; free vertices are 0
    component: int = -1  # "no": not colorable; "undecided": first open component
    # "no": vertices whose induced subgraph is not colorable.
    uncolorable_vertices: Ints | None = None


def find_coloring(
    graph: CannotLinkGraph,
    n_clusters: int,
    stop: StopSignal,
    params: ColoringParams = DEFAULT_PARAMS,
    guess: Callable[[], Ints | None] = lambda: None,
) -> ColoringResult:
    """Color the cannot-link graph with ``n_clusters`` colors, or prove that none exists.

    Bipartite components are colored by parity. Elsewhere vertices with fewer than K neighbours
    are peeled off, as they can always be colored last; the core is colored greedily, and the
    components on which that fails are searched. All but the last step takes linear time.

    Parameters
    ----------
    graph : CannotLinkGraph
        Cannot-links between groups.
    n_clusters : int
        Number of colors, K.
    stop : StopSignal
        Limits the searches only.
    guess : callable
        Returns a proper coloring found by other means, or None. Called once, where a greedy
        coloring fails on many vertices.

    Returns
    -------
    ColoringResult

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
    return _color_odd_components(graph, n_clusters, stop, labels, odd, params, guess)


def _color_odd_components(
    graph: CannotLinkGraph,
    n_clusters: int,
    stop: StopSignal,
    labels: Ints,
    odd: Mask,
    params: ColoringParams,
    guess: Callable[[], Ints | None],
) -> ColoringResult:
    alive = np.zeros(graph.n_vertices, dtype=np.bool_)
    alive[: graph.n_linked] = np.repeat(odd, np.diff(graph.starts))
    peeled = np.empty(graph.n_vertices, dtype=np.int64)
    n_peeled = peel(graph.indptr, graph.neighbors, n_clusters, alive, peeled)
    whole = SubGraph(graph.indptr, graph.neighbors, np.arange(graph.n_vertices))
    core = whole.induced(np.flatnonzero(alive))

    core_labels = dsatur_labels(core, n_clusters)
    searches = [
        ComponentColoring(component, n_clusters, params)
        for component in _uncolored_components(core, core_labels)
    ]
    labels[core.vertices] = core_labels
    if sum(search.graph.size for search in searches) >= params.min_guess_size:
        guessed = guess()
        if guessed is not None:
            return ColoringResult("yes", guessed)
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


def _uncolored_components(core: SubGraph, labels: Ints) -> list[SubGraph]:
    """Components of the core on which the greedy coloring failed, smallest first."""
    reached = np.zeros(core.size, dtype=np.bool_)
    buffer = np.empty(core.size, dtype=np.int64)
    components = []
    for seed in np.flatnonzero(labels < 0):
        if not reached[seed]:
            size = bfs_ball(core.indptr, core.neighbors, seed, core.size, reached, buffer)
            components.append(core.induced(np.sort(buffer[:size])))
    return sorted(components, key=lambda component: component.size)


def _component_of(graph: CannotLinkGraph, vertices: Ints) -> int:
    """Smallest number of a component that contains one of the vertices."""
    return int(np.searchsorted(graph.starts, vertices, side="right").min()) - 1
