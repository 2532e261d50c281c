"""Constraints: construction, union, subsets."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from certikmeans.constraint_model.cannot_link_sets import sets_of_columns
from certikmeans.errors import InputError
from certikmeans.problem import Problem
from certikmeans.problem.constraints import Constraints
from certikmeans.problem.links import Links

N_POINTS, N_CLUSTERS = 6, 4

pairs = st.lists(
    st.tuples(st.integers(0, N_POINTS - 1), st.integers(0, N_POINTS - 1)).filter(
        lambda pair: pair[0] != pair[1]
    ),
    max_size=6,
)


def partitions(n_points, n_clusters):
    """All ways to part ``n_points`` into at most ``n_clusters``, as canonical label tuples."""
    for labels in itertools.product(range(n_clusters), repeat=n_points):
        if all(label <= max(labels[:i], default=-1) + 1 for i, label in enumerate(labels)):
            yield labels


def allows(constraints, labels):
    return all(labels[i] == labels[j] for i, j in constraints.must_link) and all(
        labels[i] != labels[j] for i, j in constraints.cannot_link
    )


def implied(n_points, must, cannot):
    """All pairs that follow, as two matrices, by following every link until nothing changes."""
    together = np.eye(n_points, dtype=bool)
    for i, j in must:
        together[i, j] = together[j, i] = True
    for k in range(n_points):
        together |= np.outer(together[:, k], together[k])
    apart = np.zeros((n_points, n_points), dtype=bool)
    for i, j in cannot:
        apart |= np.outer(together[i], together[j]) | np.outer(together[j], together[i])
    return together, apart


@settings(deadline=None)  # a busy machine is no failure
@given(
    must=pairs,
    cannot=pairs,
    idx=st.lists(st.integers(0, N_POINTS - 1), unique=True),
    data=st.data(),
)
def test_subset_has_implied_pairs(must, cannot, idx, data):
    n_points = data.draw(st.sampled_from([None, N_POINTS]))
    constraints = Constraints.from_pairs(must, cannot, n_points)
    together, apart = implied(N_POINTS, must, cannot)
    assume(not apart.diagonal().any())
    part = constraints.subset(idx)
    assert part.n_points == len(idx)
    expected = tuple(relation[np.ix_(idx, idx)] for relation in (together, apart))
    found = implied(len(idx), part.must_link, part.cannot_link)
    assert np.array_equal(found[0], expected[0])
    assert np.array_equal(found[1], expected[1])
    position = {row: at for at, row in enumerate(idx)}
    for before, after in ((must, part.must_link), (cannot, part.cannot_link)):
        kept = {tuple(sorted((position[i], position[j]))) for i, j in before if {i, j} <= set(idx)}
        assert kept <= set(map(tuple, after.tolist()))


@settings(deadline=None)
@given(must=pairs, pair=st.data(), idx=st.lists(st.integers(0, N_POINTS - 1), unique=True))
def test_subset_of_contradiction_is_rejected(must, pair, idx):
    together, _ = implied(N_POINTS, must, [])
    joined = np.argwhere(np.triu(together, 1))
    assume(len(joined) > 0)
    broken = tuple(joined[pair.draw(st.integers(0, len(joined) - 1))].tolist())
    constraints = Constraints.from_pairs(must, [broken], N_POINTS)
    with pytest.raises(InputError, match="a cannot-link separates them"):
        constraints.subset(idx)


def test_subset_of_all_rows():
    constraints = Constraints.from_pairs([(0, 1), (1, 2), (0, 2)], [(2, 3), (1, 3)], 5)
    same = constraints.subset(range(5))
    assert same.must_link.tolist() == constraints.must_link.tolist()
    assert same.cannot_link.tolist() == constraints.cannot_link.tolist()


def test_links_through_removed_points():
    constraints = Constraints.from_pairs([(0, 1), (1, 2), (3, 4)], [(1, 3)], 6)
    part = constraints.subset([4, 2, 0])
    assert part.must_link.tolist() == [[1, 2]]
    assert part.cannot_link.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("idx", "fragments"),
    [
        ([0, 2, 0], "row 0 occurs more than once"),
        ([0, 5], r"idx\[1\]: row 5 does not exist"),
        ([-1], r"idx\[0\]: row -1 does not exist"),
        ([True, False, True, False, False], "np.flatnonzero"),
        ([[0, 1]], "shape"),
        ([0.5], "float64"),
    ],
)
def test_invalid_rows(idx, fragments):
    with pytest.raises(InputError, match=fragments):
        Constraints.from_pairs([(0, 1)], n_points=5).subset(idx)


@settings(deadline=None)  # a busy machine is no failure
@given(st.lists(st.sampled_from([0, 1, 2, -1]), min_size=1, max_size=5))
def test_partial_labels_feasible_set(labels):
    constraints = Constraints.from_partial_labels(labels)
    assert constraints.n_points == len(labels)
    known = [i for i, label in enumerate(labels) if label != -1]
    for partition in partitions(len(labels), N_CLUSTERS):
        agrees = all(
            (labels[i] == labels[j]) == (partition[i] == partition[j])
            for i, j in itertools.combinations(known, 2)
        )
        assert allows(constraints, partition) == agrees


@pytest.mark.parametrize(
    "labels",
    [
        [3, 3, -1, 5],
        np.array([3, 3, -1, 5], dtype=np.int8),
        [3.0, 3.0, np.nan, 5.0],
        [3, 3, None, 5],
        ["3", "3.0", "-1", "5"],
        ["a", "a", "", "b"],
        ["a", " a", None, "b"],
        ["a", "a", np.nan, "b"],
        ["a", "a", -1, "b"],
        np.array(["a", "a", np.nan, "b"]),
        np.array(["a", "a", "-1", "b"]),
        np.array([b"a", b"a", b"", b"b"]),
        np.array(["a", "a", None, 7], dtype=object),
        [2**60, 2**60, None, 2**60 + 1],
    ],
)
def test_partial_label_formats(labels):
    constraints = Constraints.from_partial_labels(labels)
    assert constraints.must_link.tolist() == [[0, 1]]
    assert constraints.cannot_link.tolist() == [[0, 3]]


def test_custom_unknown_label():
    constraints = Constraints.from_partial_labels(["a", "?", "a"], unknown="?")
    assert constraints.must_link.tolist() == [[0, 2]]
    assert not len(Constraints.from_partial_labels([0, 0], unknown=0).must_link)
    assert len(Constraints.from_partial_labels([0, 0], unknown="?").must_link) == 1


def test_partial_labels_number_of_pairs():
    constraints = Constraints.from_partial_labels(np.arange(1000) % 4)
    assert (len(constraints.must_link), len(constraints.cannot_link)) == (996, 6)


@pytest.mark.parametrize("labels", [[], [-1, -1], [None]])
def test_no_known_label(labels):
    constraints = Constraints.from_partial_labels(labels)
    assert constraints.must_link.shape == constraints.cannot_link.shape == (0, 2)
    assert constraints.n_points == len(labels)


def test_invalid_labels():
    for labels in ([[1, 2]], np.ones(2, dtype=complex)):
        with pytest.raises(InputError, match="one label per point"):
            Constraints.from_partial_labels(labels)


@settings(deadline=None)  # a busy machine is no failure
@given(st.lists(st.lists(st.integers(0, N_POINTS - 1), max_size=4), max_size=4))
def test_groups_link_all_members(groups):
    constraints = Constraints.from_groups(groups, n_points=N_POINTS)
    together, _ = implied(N_POINTS, constraints.must_link, [])
    all_pairs = [pair for group in groups for pair in itertools.combinations(group, 2)]
    assert np.array_equal(together, implied(N_POINTS, all_pairs, [])[0])


@pytest.mark.parametrize(
    ("groups", "n_points", "fragments"),
    [
        ([[0, 1], [2, 7]], 5, r"groups\[1\]: point 7 does not exist"),
        ([[], [0, 1], [2, -1]], None, r"groups\[2\]: point -1 does not exist"),
        ([[0, 1.5]], None, "whole numbers"),
        ([["a", "b"]], None, "whole numbers"),
    ],
)
def test_invalid_groups(groups, n_points, fragments):
    with pytest.raises(InputError, match=fragments):
        Constraints.from_groups(groups, n_points)


def test_union():
    left = Constraints.from_pairs([(0, 1)], [(2, 1)], n_points=4)
    both = left | Constraints.from_groups([[1, 0], [2, 3]])
    assert both.must_link.tolist() == [[0, 1], [2, 3]]
    assert both.cannot_link.tolist() == [[1, 2]]
    assert both.n_points == 4
    assert (Constraints() | Constraints()).n_points is None
    with pytest.raises(InputError, match="about 4 points, the other about 5"):
        left | Constraints(n_points=5)
    with pytest.raises(InputError, match="does not exist"):
        left | Constraints.from_pairs([(0, 9)])
    with pytest.raises(TypeError):
        left | [(0, 1)]


def test_check_number_of_rows():
    known = Constraints.from_pairs([(0, 1)], n_points=4)
    known.check(4)
    for n_points in (3, 5):
        with pytest.raises(InputError, match=r"about 4 points(.|\n)*subset\(idx\)"):
            known.check(n_points)
    open_ended = Constraints.from_pairs(cannot_link=[(0, 3)])
    open_ended.check(4)
    with pytest.raises(InputError, match="names point 3, but there are 3"):
        open_ended.check(3)


@pytest.mark.parametrize(
    ("must", "n_points", "fragments"),
    [
        ([(0, 4)], 4, r"must_link\[0\]: pair \(0, 4\)"),
        ([(0, 1), (-1, 2)], None, r"must_link\[1\]: pair \(-1, 2\)"),
        ([(1, 1)], None, "links a point to itself"),
        ([(0, 1)], 2.5, "n_points"),
        ([(0, 1)], -2, "n_points"),
        (Links(np.array([[0, 8]]), "p.txt", np.array([3]), 1), 4, r"p\.txt, line 3: pair \(1, 9\)"),
    ],
)
def test_invalid_pairs(must, n_points, fragments):
    with pytest.raises(InputError, match=fragments):
        Constraints.from_pairs(must, n_points=n_points)


def test_constraints_is_immutable():
    constraints = Constraints.from_pairs([(1, 0), (0, 1)], n_points=3)
    assert repr(constraints) == "Constraints(1 must-link, 0 cannot-links, n_points=3)"
    with pytest.raises(AttributeError):
        constraints.n_points = 4
    with pytest.raises(ValueError, match="read-only"):
        constraints.must_link[0, 0] = 2
    for same in (copy.deepcopy(constraints), pickle.loads(pickle.dumps(constraints))):
        assert same.must_link.tolist() == [[0, 1]]
        assert same.n_points == 3


def test_softened_pairs_keep_sets_and_soft_pairs():
    hard = Constraints(
        must_link=[(0, 1)],
        cannot_link=[(0, 1), (2, 3)],
        n_points=4,
        cannot_link_groups=[0, 0, -1, -1],
        soft_must_link=[(1, 2, 0.5)],
    )
    soft = hard.softened(3.0)
    assert len(soft.must_link) == len(soft.cannot_link) == 0
    assert soft.n_points == 4
    assert soft.cannot_link_groups.tolist() == hard.cannot_link_groups.tolist()
    assert soft.soft_must_link.pairs.tolist() == [[1, 2], [0, 1]]
    assert soft.soft_must_link.penalties.tolist() == [0.5, 3.0]
    assert soft.soft_cannot_link.penalties.tolist() == [3.0, 3.0]


def test_negative_penalty_is_rejected():
    with pytest.raises(InputError, match=r"soft_must_link\[0\]: the penalty is -1"):
        Constraints(must_link=[(0, 1)]).softened(-1.0)


def _penalty(constraints, labels):
    total = 0.0
    for kind, violated_if_together in (("soft_must_link", False), ("soft_cannot_link", True)):
        priced = getattr(constraints, kind)
        ends = labels[priced.pairs]
        total += priced.penalties[(ends[:, 0] == ends[:, 1]) == violated_if_together].sum()
    return total


def _satisfied(constraints, labels):
    must, cannot = labels[constraints.must_link], labels[constraints.cannot_link]
    separated = all(
        len(set(labels[one])) == len(one) for one in sets_of_columns(constraints.cannot_link_groups)
    )
    return (must[:, 0] == must[:, 1]).all() and (cannot[:, 0] != cannot[:, 1]).all() and separated


@pytest.mark.parametrize("seed", range(12))
def test_subset_of_sets_and_soft_pairs(seed):
    """Every labelling of all rows satisfies the subset; what it pays there, it pays at all."""
    rng = np.random.default_rng(seed)
    pairs = [tuple(pair) for pair in itertools.combinations(range(6), 2)]
    chosen = rng.permutation(len(pairs))
    every = Constraints(
        must_link=[pairs[c] for c in chosen[:2]],
        n_points=6,
        cannot_link_groups=rng.integers(-1, 3, size=(6, 2)),
        soft_must_link=[(*pairs[c], 1.5) for c in chosen[2:5]],
        soft_cannot_link=[(*pairs[c], 0.5) for c in chosen[5:8]],
    )
    labellings = [np.array(one) for one in itertools.product(range(4), repeat=6)]
    feasible = [labels for labels in labellings if _satisfied(every, labels)]
    rows = rng.permutation(6)[:4]
    part = every.subset(rows) if feasible else every.subset(np.arange(6))
    kept = rows if feasible else np.arange(6)
    for labels in feasible:
        assert _satisfied(part, labels[kept])
        assert _penalty(part, labels[kept]) <= _penalty(every, labels)
    inside = np.isin(every.soft_must_link.pairs, kept).all(axis=1)
    assert len(part.soft_must_link) >= inside.sum()


def test_members_of_sets_are_replaced_by_their_group():
    every = Constraints(
        must_link=[(0, 1)],
        cannot_link_groups=[5, -1, 5, -1, 2, 2],
        soft_must_link=[(0, 4, 1.0), (0, 1, 9.0)],
    )
    part = every.subset([1, 2, 4])
    assert [one.tolist() for one in sets_of_columns(part.cannot_link_groups)] == [[0, 1]]
    assert part.soft_must_link.pairs.tolist() == [[0, 2]]
    with pytest.raises(InputError, match="two points of one cannot-link group"):
        Constraints(must_link=[(0, 1), (1, 2)], cannot_link_groups=[3, -1, 3, 3]).subset([1, 3])


def test_union_and_arguments_of_all_kinds():
    one = Constraints(cannot_link_groups=[0, 0, -1], soft_must_link=[(0, 1, 2.0)])
    other = Constraints(must_link=[(0, 2)], soft_cannot_link=[(1, 2, np.inf)], n_points=3)
    both = one | other
    assert repr(both) == (
        "Constraints(1 must-link, 1 cannot-link, 1 cannot-link set, 1 soft pair, n_points=3)"
    )
    given = both.as_fit_params(3)
    problem = Problem.from_data(np.eye(3), 2, **given)
    assert problem.cannot_link.tolist() == [[1, 2]]
    assert problem.cannot_link_groups.tolist() == [[0, 0, -1]]
    with pytest.raises(InputError, match="about 3 points, but there are 4"):
        both.check(4)
    assert Constraints.from_cannot_link_groups(["a", "", "a"]).n_points == 3
    by_id = Constraints.from_pairs(soft_must_link=[("x", "y", 2.5)], index=["y", "x"])
    assert by_id.soft_must_link.pairs.tolist() == [[1, 0]]
