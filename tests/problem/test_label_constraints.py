"""Label constraints: another kind is supported through the contract, or rejected."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from certikmeans import InputError, Problem
from certikmeans.assignment import (
    ASSIGNERS,
    AbstractAssigner,
    Assignment,
    LloydRun,
    StepSums,
    make_assigner,
)
from certikmeans.bounds.base import BoundContext, BoundInput
from certikmeans.bounds.registry import BOUNDS, make_bound
from certikmeans.heuristics.base import HeuristicContext
from certikmeans.heuristics.default import DefaultSearch
from certikmeans.heuristics.local_search import NeighborhoodSearch, draw_sample
from certikmeans.presolve.pipeline import presolve
from certikmeans.problem import LabelConstraints, ReducedProblem
from certikmeans.problem.data import Domain
from certikmeans.stop import StopSignal
from certikmeans.testing.contracts import check_feasible
from certikmeans.testing.oracle import exact_cost, feasible_labellings
from certikmeans.tree.branching import choose_branching
from certikmeans.tree.pair_branching import PairBranching
from tests.bounds.cluster_oracle import make_reduced

MOST = 2


class Sizes(LabelConstraints):
    """At most two groups in a cluster, beside cannot-links."""

    kind = "cluster sizes"

    def __init__(self, cannot_links):
        self._cannot_links = cannot_links

    @property
    def cannot_links(self):
        return self._cannot_links

    @property
    def is_cannot_link_only(self):
        return False

    def satisfied_by(self, labels):
        tails, heads = self._cannot_links.edges().T
        return bool(np.bincount(labels).max() <= MOST and (labels[tails] != labels[heads]).all())

    def component_starts(self):
        return np.array([0, self._cannot_links.n_vertices])

    def subset(self, rows):
        return Sizes(self._cannot_links.subset(rows))


class ByEnumeration(AbstractAssigner):
    """Answers for any rules, by trying everything."""

    step_work = 1e4
    needs_search = False

    def __init__(self, problem, feasible_labels, **settings):
        self._problem = problem
        self._all = admissible(problem)

    def with_exact_time_limit(self, exact_time_limit):
        return self

    def assign(self, centers, *, stop=None):
        away = self._problem.points[:, None, :] - np.asarray(centers)[None, :, :]
        return self.assign_costs(self._problem.weights[:, None] * (away**2).sum(axis=2))

    def assign_costs(self, costs, *, stop=None):
        totals = np.asarray(costs)[np.arange(self._problem.n_groups), self._all].sum(axis=1)
        best = int(np.argmin(totals))
        cost = float(totals[best])
        return Assignment(self._all[best].copy(), cost, cost * (1.0 - 1e-12), True)

    def step(self, centers, labels_out, *, executor=None, stop=None):
        found = self.assign(centers)
        changed = int((labels_out != found.labels).sum())
        labels_out[:] = found.labels
        sums, masses = self._problem.cluster_sums(found.labels)
        return StepSums(sums, masses, found.cost, found.lower_bound, True, changed)

    def lloyd(
        self, centers, labels_out, max_iterations=300, *, tolerance=0.0, executor=None, stop=None
    ):
        cost = np.inf
        for _ in range(max_iterations):
            found = self.assign(centers)
            if not found.cost < cost:
                break
            labels_out[:], cost = found.labels, found.cost
            centers = self._problem.cluster_means(labels_out)
        return LloydRun(labels_out, centers, cost, 1, True)


def admissible(problem):
    """Every labelling that keeps to the rules."""
    everything = product(range(problem.n_clusters), repeat=problem.n_groups)
    kept = [one for one in everything if problem.label_constraints.satisfied_by(np.array(one))]
    return np.array(kept, dtype=np.int64)


def drawn(seed):
    """Six groups, one of them far away, and a link: at most two in each of three clusters."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(6, 2)) + np.repeat([[0.0], [20.0]], [5, 1], axis=0)
    linked = make_reduced(points, rng.uniform(0.5, 2.0, size=6), [(0, 1)], 3)
    return linked, replace(linked, label_constraints=Sizes(linked.graph))


def optimum(problem):
    return min(exact_cost(problem.points, problem.weights, one) for one in admissible(problem))


def context_of(problem, assigner):
    return HeuristicContext(problem, assigner, admissible(problem)[0], StopSignal())


@pytest.fixture
def known(monkeypatch):
    monkeypatch.setitem(ASSIGNERS, Sizes.kind, ByEnumeration)


def test_satisfied_by():
    problem = make_reduced(np.arange(5.0)[:, None], np.ones(5), [(0, 1), (1, 2)], 3)
    pairs = problem.graph.edges()
    labellings = list(feasible_labellings(Problem.from_data(problem.points, 3, cannot_link=pairs)))
    assert labellings
    assert all(problem.label_constraints.satisfied_by(np.array(labels)) for labels in labellings)
    assert not problem.label_constraints.satisfied_by(np.zeros(5, dtype=np.int64))


@pytest.mark.parametrize("seed", range(20))
def test_subset_of_components(seed):
    rng = np.random.default_rng(seed)
    pairs = rng.integers(12, size=(5, 2))
    problem = make_reduced(np.zeros((12, 1)), np.ones(12), pairs[pairs[:, 0] != pairs[:, 1]], 3)
    starts = problem.label_constraints.component_starts()
    assert len(starts) - 1 == problem.graph.n_components + 12 - problem.graph.n_linked
    kept = rng.permutation(len(starts) - 1)[: max(1, len(starts) // 2)]
    rows = np.concatenate([np.arange(starts[u], starts[u + 1]) for u in np.sort(kept)])
    domain = problem.label_constraints.subset(rows)
    expected = [edge for edge in problem.graph.edges().tolist() if edge[0] in rows]
    assert rows[domain.graph.edges()].tolist() == expected
    whole = problem.label_constraints.component_starts()
    assert np.array_equal(np.diff(domain.component_starts()), np.diff(whole)[np.sort(kept)])
    parents = problem.graph.parents[rows[: domain.graph.n_linked]]
    assert np.where(domain.graph.parents < 0, -1, rows[domain.graph.parents]).tolist() == [*parents]


@pytest.mark.parametrize("seed", range(10))
def test_heuristics_with_other_constraints(known, seed):
    linked, sized = drawn(seed)
    free = DefaultSearch().search(context_of(linked, make_assigner(linked, admissible(linked)[0])))
    assert not sized.label_constraints.satisfied_by(free), "the rules would not matter"
    labels = DefaultSearch().search(context_of(sized, make_assigner(sized, admissible(sized)[0])))
    check_feasible(sized, labels)
    cost = exact_cost(sized.points, sized.weights, labels)
    assert cost == optimum(sized)


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("seed", range(5))
def test_bounds_with_other_constraints(known, name, seed):
    _, sized = drawn(seed)
    bound = make_bound(name)
    state = bound.setup(BoundInput(sized, make_assigner(sized, admissible(sized)[0])))
    found = bound.compute(state, Domain.root(sized), np.inf, BoundContext())
    assert found.value <= optimum(sized)


def test_sample_has_whole_components():
    _, sized = drawn(0)
    sample = draw_sample(sized, 4, np.random.default_rng(0))
    assert len(sample.rows) == sized.n_groups  # sizes are about everyone
    assert not sample.problem.label_constraints.is_cannot_link_only


def refused_by_name():
    return pytest.raises(InputError, match="cannot take account of cluster sizes")


def test_unsupported_constraints():
    _, sized = drawn(0)
    with refused_by_name() as error:
        make_assigner(sized, admissible(sized)[0])
    assert error.value.hint


def test_chain_moves_reject_sizes(known):
    linked, sized = drawn(0)
    assert NeighborhoodSearch(linked, make_assigner(linked, admissible(linked)[0])) is not None
    with refused_by_name():
        NeighborhoodSearch(sized, make_assigner(sized, admissible(sized)[0]))


def test_pair_branching_rejects_sizes(known):
    done = presolve(Problem.from_data(np.arange(6.0)[:, None], 3), StopSignal())
    bound = make_bound("cluster")
    assert choose_branching("auto", bound, done.reduced) == "pairs"
    sized = replace(done, reduced=_with_sizes(done.reduced))
    assert choose_branching("auto", bound, sized.reduced) == "centers"
    inputs = BoundInput(sized.reduced, make_assigner(sized.reduced, admissible(sized.reduced)[0]))
    with refused_by_name():
        PairBranching(sized, bound, inputs)


def _with_sizes(reduced: ReducedProblem) -> ReducedProblem:
    return replace(reduced, label_constraints=Sizes(reduced.graph))
