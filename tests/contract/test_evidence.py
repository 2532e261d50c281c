"""Every kind of evidence, and every kind of leaf that reads it."""

from __future__ import annotations

import numpy as np
import pytest

from certikmeans import Problem, solve
from certikmeans.bounds.base import BoundContext
from certikmeans.bounds.partition.bound import PartitionEvidence
from certikmeans.bounds.registry import BOUNDS, make_bound
from certikmeans.bounds.sdp.limits import AssumedSizes
from certikmeans.bounds.sdp.model import MatrixMultipliers
from certikmeans.bounds.set_assignment import SetEvidence
from certikmeans.bounds.soft_pairs import SoftPairEvidence
from certikmeans.bounds.spectral.bound import SpectralEvidence
from certikmeans.certificate import format as form
from certikmeans.certificate.check import check_certificate
from certikmeans.certificate.leaves import CODES, KINDS
from certikmeans.certificate.write import make_certificate
from certikmeans.presolve.pipeline import presolve
from certikmeans.problem.data import Domain
from certikmeans.proof import AbstractEvidence, GroupMultipliers, LeafProof
from certikmeans.solver.context import SolveContext
from certikmeans.solver.state import SolveState
from certikmeans.stop import StopSignal
from certikmeans.testing.contracts import make_bound_input

# Numbers in files that exist: they never change. A new kind takes the next one.
FROZEN = {
    "cluster": 2,
    "sample": 3,
    "one cluster": 4,
    "infeasible": 5,
    "trivial": 6,
    "sdp": 7,
    "spectral": 8,
    "partition": 9,
    "soft": 10,
    "sets": 11,
}


def group_multipliers(rng, n_groups):
    return GroupMultipliers(rng.normal(size=n_groups))


def matrix_multipliers(rng, n_groups):
    entries = rng.uniform(size=(n_groups, n_groups))
    cuts = np.array([rng.choice(n_groups, 3, replace=False) for _ in range(4)])
    made = MatrixMultipliers(entries + entries.T, cuts, rng.uniform(size=4))
    return made.renumbered(np.arange(n_groups))  # cuts in order


def sizes_and_multipliers(rng, n_groups):
    sizes = AssumedSizes(rng.permutation(n_groups) + 1.0, True)
    light, inner = matrix_multipliers(rng, n_groups), matrix_multipliers(rng, n_groups)
    return SoftPairEvidence(sizes, light, inner)


def matchings(rng, n_groups):
    rows = rng.permutation(n_groups)
    return SetEvidence(((rows[:3], rows[3:6]),), (rng.uniform(size=(1, 3)),), np.arange(n_groups))


def found_by(name):
    """Evidence of the bound of this name at the root."""

    def make(rng, n_groups):
        problem = Problem.from_data(rng.normal(size=(n_groups, 4)), 3)
        done = presolve(problem, StopSignal())
        run_state = SolveState(problem, SolveContext())
        run_state.update_incumbent(solve(problem, jobs=1).labels, "known")
        bound, whole = make_bound(name), Domain.root(done.reduced)
        state = bound.setup(make_bound_input(done, keep_proof=True))
        ctx = BoundContext(at_root=True, incumbent=run_state.reduced_view(done), name=name)
        found = bound.compute(state, whole, np.inf, ctx).leaf.evidence
        assert found is not None
        return found

    return make


# How each is made for a number of groups, and the bound whose certificates hold it.
MAKERS = {
    GroupMultipliers: group_multipliers,
    MatrixMultipliers: matrix_multipliers,
    SpectralEvidence: found_by("spectral"),
    PartitionEvidence: found_by("partition"),
    SoftPairEvidence: sizes_and_multipliers,
    SetEvidence: matchings,
}
READABLE = {
    GroupMultipliers: lambda length, n_groups: length == n_groups,
    MatrixMultipliers: lambda length, n_groups: (length - n_groups * (n_groups + 1) // 2) % 4 == 0,
    SpectralEvidence: None,  # taken as it is
    PartitionEvidence: None,
    SoftPairEvidence: None,
    SetEvidence: None,
}
BOUND_OF = {
    GroupMultipliers: "cluster",
    MatrixMultipliers: "sdp",
    SpectralEvidence: "spectral",
    PartitionEvidence: "partition",
    SoftPairEvidence: "soft",
    SetEvidence: "sets",
}
# Two sets of three points, of which the first ends a must-link.
SETS = [0, -1, -1, 1, -1, -1, 0, -1, 0, 1, 1, -1, -1, -1]
KINDS_OF_EVIDENCE = pytest.mark.parametrize("kind", MAKERS, ids=lambda kind: kind.__name__)


def test_every_kind_is_here():
    for name in BOUNDS:
        make_bound(name)  # loads its module
    found = {_name(kind) for kind in AbstractEvidence.__subclasses__()}
    made_by_bounds = ("certikmeans.bounds.", "certikmeans.proof.")  # others pass it on
    assert {name for name in found if name.startswith(made_by_bounds)} == set(map(_name, MAKERS))


def _name(kind):
    """Classes with slots are made twice: by name they are one."""
    return f"{kind.__module__}.{kind.__qualname__}"


@KINDS_OF_EVIDENCE
@pytest.mark.parametrize("seed", range(20))
def test_renumbering_composes(kind, seed):
    rng = np.random.default_rng(seed)
    evidence = MAKERS[kind](rng, 7)
    first, second = rng.permutation(7), rng.permutation(7)
    twice = evidence.renumbered(first).renumbered(second)
    assert type(twice) is kind
    assert np.array_equal(twice.row(), evidence.renumbered(first[second]).row())
    back = evidence.renumbered(first).renumbered(np.argsort(first))
    assert np.array_equal(back.row(), evidence.row())
    assert not np.array_equal(evidence.renumbered(np.roll(np.arange(7), 1)).row(), evidence.row())


@KINDS_OF_EVIDENCE
@pytest.mark.parametrize("seed", range(20))
def test_joined_evidence_row(kind, seed):
    rng = np.random.default_rng(seed)
    evidence = MAKERS[kind](rng, 7)
    same = evidence.joined(np.arange(7), 7, np.zeros(7))
    assert np.allclose(same.row(), evidence.row(), rtol=1e-15)
    group_of = np.array([0, 1, 1, 2, 3, 4, 4])
    joined = evidence.joined(group_of, 5, rng.uniform(size=5))
    row = joined.row()
    assert type(joined) is kind
    assert row.ndim == 1
    assert row.dtype == np.float64
    assert np.isfinite(row).all()
    if READABLE[kind] is None:
        assert np.array_equal(row, evidence.row())
    else:
        assert READABLE[kind](len(row), 5)


def test_joined_multipliers():
    evidence = GroupMultipliers(np.array([1.0, 2.0, 4.0]))
    joined = evidence.joined(np.array([0, 1, 1]), 2, np.array([0.0, 0.5]))
    assert joined.row().tolist() == [1.0, 5.5]


@pytest.mark.parametrize(
    ("kind", "branching"),
    [
        (kind, branching)
        for kind in MAKERS
        for branching in ("centers", "pairs")
        if branching == "pairs" or make_bound(BOUND_OF[kind]).uses_center_boxes
    ],
)
def test_evidence_in_certificate(kind, branching):
    rng = np.random.default_rng(3)
    problem = Problem.from_data(
        rng.normal(size=(14, 4)),
        3,
        must_link=[(0, 1), (5, 2)],
        cannot_link=[(1, 7), (3, 4)],
        cannot_link_groups=SETS if kind is SetEvidence else None,
    )
    result = solve(
        problem,
        bound=BOUND_OF[kind],
        branching=branching,
        keep_proof=True,
        gap=1e-6,
        node_limit=6 if make_bound(BOUND_OF[kind]).usable_in_tree else 1,
    )
    leaves = [node for node in result.proof.nodes if isinstance(node, LeafProof)]
    held = [leaf for leaf in leaves if type(leaf.evidence) is kind]
    assert held
    assert all(leaf.kind == BOUND_OF[kind] for leaf in held)
    made = make_certificate(problem, result)
    again = form.decode(form.encode(made))
    assert np.array_equal(again.multipliers, made.multipliers)
    assert np.array_equal(again.multipliers, np.concatenate([leaf.evidence.row() for leaf in held]))
    answer = check_certificate(
        problem.points, form.encode(made), constraints=problem.other_arrays()
    )
    assert answer.accepted, answer.message


def test_numbers_of_leaf_kinds_are_frozen():
    assert {name: CODES[name] for name in FROZEN} == FROZEN
    assert len(CODES) == len(KINDS)  # names are unique, and so are numbers
    assert all(name == KINDS[code].NAME for name, code in CODES.items())
    assert min(KINDS) == 2  # 0 and 1 are splits


@pytest.mark.parametrize("name", BOUNDS)
def test_certifiable_bounds_have_verifier(name):
    bound = make_bound(name)
    if bound.certifiable:
        kind = KINDS[CODES[bound.name]]
        assert callable(kind.check)
        assert kind.__doc__
    else:
        assert bound.name not in CODES


def test_both_cases_occur():
    assert {make_bound(name).certifiable for name in BOUNDS} == {True, False}
