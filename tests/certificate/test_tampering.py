"""Certificates with any change are rejected, for the right reason, without an exception."""

from __future__ import annotations

import json
import struct
import zlib

import numpy as np
import pytest

from certikmeans import Problem
from certikmeans.certificate import format as form
from certikmeans.certificate.check import check_certificate
from certikmeans.certificate.format import Reason, Rejection
from certikmeans.certificate.leaves import CODES
from certikmeans.proof import CenterSplit, LeafProof, PairSplit, Proof
from certikmeans.testing.oracle import brute_force
from tests.certificate.helpers import certificate, change, root_proof, verdict


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(5)
    centers = np.repeat(np.array([[0.0, 0.0], [6.0, 1.0]]), 5, axis=0)
    points = centers + rng.normal(size=(10, 2))
    return Problem.from_data(
        points, 2, must_link=[(0, 1), (5, 6)], cannot_link=[(2, 7), (3, 8)],
        weights=rng.integers(1, 3, 10),
    )  # fmt: skip


@pytest.fixture(scope="module")
def genuine(problem):
    optimum, labels = brute_force(problem)
    proof = root_proof(problem, labels, gap=1e-4)
    return certificate(problem, labels, float(optimum) * (1 + 1e-12), proof)


@pytest.fixture(scope="module")
def with_tree(problem, genuine):
    """The same claim with two splits, so three leaves."""
    _, labels = brute_force(problem)
    root = root_proof(problem, labels, gap=1e-4)
    leaf = root.nodes[0]
    nodes = (CenterSplit(0, 0, 0.5), leaf, CenterSplit(1, 1, 0.0), leaf, leaf)
    return certificate(
        problem, labels, genuine.cost, Proof(root.lower_bound, root.center, root.axes, nodes)
    )


def test_genuine_accepted(problem, genuine, with_tree):
    for made in (genuine, with_tree):
        answer = verdict(
            problem, made, must_link=problem.must_link[:, ::-1],
            cannot_link=problem.cannot_link, weights=problem.weights,
        )  # fmt: skip
        assert answer.accepted, answer.message
        assert answer.reason is Reason.ACCEPTED
        assert 0.0 < answer.gap < 2e-4


def reason(problem, made, **options):
    answer = verdict(problem, made, **options)
    assert not answer.accepted
    assert answer.message
    return answer.reason


def test_labels(problem, genuine):
    labels = genuine.labels.copy()
    labels[4] = 1 - labels[4]
    assert reason(problem, change(genuine, labels=labels)) is Reason.COST
    labels = genuine.labels.copy()
    labels[0] = 1 - labels[0]
    assert reason(problem, change(genuine, labels=labels)) is Reason.LABELS
    labels = genuine.labels.copy()
    labels[7] = labels[2]
    assert reason(problem, change(genuine, labels=labels)) is Reason.LABELS
    labels = genuine.labels.copy()
    labels[4] = 7
    assert reason(problem, change(genuine, labels=labels)) is Reason.LABELS


def test_pairs(problem, genuine):
    dropped = change(genuine, cannot_link=genuine.cannot_link[:1])
    assert reason(problem, dropped, cannot_link=problem.cannot_link) is Reason.PAIRS
    kept = change(dropped, pairs_sha256=genuine.pairs_sha256)
    assert reason(problem, kept) is Reason.PAIRS
    for pairs in ([(7, 2), (3, 8)], [(2, 2)], [(2, 77)], [(3, 8), (2, 7)], [(2, 7), (2, 7)]):
        made = change(genuine, cannot_link=np.array(pairs))
        assert reason(problem, made) is Reason.PAIRS
    more = np.vstack([genuine.must_link[:1], [[2, 3]], genuine.must_link[1:]])
    # One group less: the multipliers do not fit.
    assert reason(problem, change(genuine, must_link=more)) in (Reason.BOUND, Reason.LABELS)
    assert reason(problem, genuine, must_link=[(0, 2)]) is Reason.PAIRS


def test_claims(problem, genuine):
    assert reason(problem, change(genuine, cost=genuine.cost * (1 - 1e-9))) is Reason.COST
    for bound in (genuine.lower_bound * 1.001, genuine.cost, 1e50, 1e299):
        assert reason(problem, change(genuine, lower_bound=bound)) is Reason.BOUND
    assert reason(problem, change(genuine, n_clusters=1)) is Reason.LABELS
    assert reason(problem, change(genuine, n_clusters=3)) is Reason.BOUND
    assert reason(problem, change(genuine, n_clusters=0)) in (Reason.FIELD, Reason.LABELS)
    assert reason(problem, change(genuine, n_clusters=99)) is Reason.FIELD


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e200])
def test_invalid_numbers(problem, genuine, with_tree, value):
    for name in ("multipliers", "center", "axes", "weights"):
        array = getattr(genuine, name).copy()
        array.flat[0] = value
        assert reason(problem, change(genuine, **{name: array})) is Reason.FIELD
    if not np.isfinite(value):
        values = with_tree.values.copy()
        values[0] = value
        assert reason(problem, change(with_tree, values=values)) is Reason.TREE


def test_multipliers(problem, genuine):
    for factor in (0.9, 1.1, -1.0, 0.0, 1e100):
        multipliers = genuine.multipliers * factor
        assert reason(problem, change(genuine, multipliers=multipliers)) is Reason.BOUND
    one = genuine.multipliers.copy()
    one[0] += genuine.cost
    assert reason(problem, change(genuine, multipliers=one)) is Reason.BOUND
    short = change(genuine, multipliers=genuine.multipliers[:-1], lengths=genuine.lengths - 1)
    assert reason(problem, short) is Reason.BOUND


def test_coordinates(problem, genuine):
    for axes in (genuine.axes[:, :1], genuine.axes * 1.5, np.zeros_like(genuine.axes)):
        assert reason(problem, change(genuine, axes=axes)) is Reason.BOUND
    assert reason(problem, change(genuine, axes=genuine.axes[:, :0])) is Reason.FIELD
    changed = change(genuine, axes=genuine.axes * 0.5)  # half the distances, a fourth of the cost
    assert reason(problem, changed) is Reason.BOUND
    # The center is any point: a shift changes nothing but rounding.
    assert verdict(problem, change(genuine, center=genuine.center + 1.0)).accepted


def test_weights(problem, genuine):
    for value in (1e-13, -1.0, 1e13):
        weights = genuine.weights.copy()
        weights[3] = value
        assert reason(problem, change(genuine, weights=weights)) is Reason.FIELD
    assert reason(problem, change(genuine, weights=np.zeros(10))) is Reason.FIELD
    lighter = genuine.weights.copy()
    lighter[3] = 0.0  # valid, but then every labelling costs less
    assert reason(problem, change(genuine, weights=lighter)) is Reason.BOUND
    without = change(genuine, weights=None)
    assert reason(problem, without, weights=problem.weights) is Reason.PROBLEM
    assert reason(problem, genuine, n_clusters=problem.n_clusters + 1) is Reason.PROBLEM
    heavier = genuine.weights.copy()
    heavier[3] = 50.0
    assert reason(problem, change(genuine, weights=heavier)) is Reason.COST


def test_data(problem, genuine):
    content = form.encode(genuine)
    points = problem.points.copy()
    points[0, 0] = np.nextafter(points[0, 0], np.inf)
    assert check_certificate(points, content).reason is Reason.DATA
    assert check_certificate(problem.points[:-1], content).reason is Reason.DATA
    assert check_certificate(problem.points[:, :1], content).reason is Reason.DATA
    assert check_certificate(problem.points.ravel(), content).reason is Reason.DATA
    for value in (np.nan, np.inf, 1e61):
        points[0, 0] = value
        made = change(genuine, data_sha256=form.hash_points(points))
        assert check_certificate(points, form.encode(made)).reason is Reason.DATA
    narrow = np.full_like(points, 1.0)
    narrow[0, 0] = 0.0
    narrow *= 1e-61
    made = change(genuine, data_sha256=form.hash_points(narrow))
    assert check_certificate(narrow, form.encode(made)).reason is Reason.DATA


def test_missing_and_extra_leaves(problem, with_tree):
    def shortened(count):
        names = ("kinds", "first", "second", "values")
        return change(with_tree, **{name: getattr(with_tree, name)[:count] for name in names})

    for count in range(5):
        assert reason(problem, shortened(count)) is Reason.TREE
    names = ("kinds", "first", "second", "values")
    longer = {
        name: np.append(getattr(with_tree, name), getattr(with_tree, name)[-1:]) for name in names
    }
    assert reason(problem, change(with_tree, **longer)) is Reason.TREE


def test_invalid_center_splits(problem, with_tree):
    for name, value in (("first", 2), ("first", -1), ("second", 2), ("second", -1)):
        array = getattr(with_tree, name).copy()
        array[0] = value
        assert reason(problem, change(with_tree, **{name: array})) is Reason.TREE
    kinds = with_tree.kinds.copy()
    kinds[1] = 77
    assert reason(problem, change(with_tree, kinds=kinds)) is Reason.TREE
    kinds[1] = form.PAIR_SPLIT
    assert reason(problem, change(with_tree, kinds=kinds)) is Reason.TREE
    first = with_tree.first.copy()
    first[1] = 5
    assert reason(problem, change(with_tree, first=first)) is Reason.TREE


def strong_tree(problem):
    """A tree whose sides need their own evidence: one side is empty."""
    optimum, labels = brute_force(problem)
    root = root_proof(problem, labels, gap=1e-4)
    # The first center in ascending order is not to the right of every point: empty.
    right = float(((problem.points - root.center) @ root.axes)[:, 0].max()) + 1.0
    nodes = (CenterSplit(0, 0, right), root.nodes[0], LeafProof("infeasible"))
    return certificate(
        problem, labels, float(optimum) * (1 + 1e-12),
        Proof(root.lower_bound, root.center, root.axes, nodes),
    )  # fmt: skip


def test_shifted_split_and_swapped_children(problem):
    made = strong_tree(problem)
    assert verdict(problem, made).accepted
    values = made.values.copy()
    values[0] = -0.5
    assert reason(problem, change(made, values=values)) is Reason.BOUND
    swapped = [0, 2, 1]
    names = ("kinds", "first", "second", "values")
    changed = change(made, **{name: getattr(made, name)[swapped] for name in names})
    assert reason(problem, changed) is Reason.BOUND


@pytest.mark.parametrize("kind", ["sample", "one cluster", "infeasible", "trivial"])
def test_evidence_of_another_kind(problem, genuine, kind):
    kinds = np.array([CODES[kind]], dtype=np.uint8)
    assert reason(problem, change(genuine, kinds=kinds)) is Reason.BOUND
    if kind != "infeasible":
        assert verdict(problem, change(genuine, kinds=kinds, lower_bound=0.0)).accepted


def test_false_infeasibility(problem, genuine):
    nothing = {"labels": None, "cost": np.inf, "lower_bound": np.inf}
    assert reason(problem, change(genuine, **nothing)) is Reason.BOUND
    kinds = np.array([CODES["infeasible"]], dtype=np.uint8)
    assert reason(problem, change(genuine, **nothing, kinds=kinds)) is Reason.BOUND


def test_truncation(problem, genuine):
    content = form.encode(genuine)
    for length in range(len(content)):
        answer = check_certificate(problem.points, content[:length])
        assert not answer.accepted
        assert answer.reason is Reason.DAMAGED
    assert check_certificate(problem.points, content + b"x").reason is Reason.DAMAGED


def test_flipped_bytes(problem, genuine):
    content = form.encode(genuine)
    optimum, _ = brute_force(problem)
    rng = np.random.default_rng(0)
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= int(rng.integers(1, 256))
        answer = check_certificate(problem.points, bytes(damaged))
        if answer.accepted:  # the name of the writer, or a digit of a weaker claim
            assert answer.lower_bound <= float(optimum)
            assert answer.cost >= float(optimum)


def test_random_bytes(problem):
    rng = np.random.default_rng(1)
    for size in (0, 1, 15, 16, 17, 100, 5000):
        noise = rng.integers(0, 256, size, dtype=np.uint8).tobytes()
        assert check_certificate(problem.points, noise).reason is Reason.DAMAGED
        with_magic = form.MAGIC + struct.pack("<I", 1) + noise
        assert not check_certificate(problem.points, with_magic).accepted


def rewritten(content, payload=None, **fields):
    """The file with other header fields, consistent in everything else."""
    length = struct.unpack_from("<8sII", content)[2]
    header = json.loads(content[16 : 16 + length]) | fields
    text = json.dumps(header).encode()
    rest = content[16 + length :] if payload is None else payload
    return content[:12] + struct.pack("<I", len(text)) + text + rest


def test_invalid_headers(problem, genuine):
    content = form.encode(genuine)
    for name in ("n_points", "n_must_link", "n_nodes", "n_rows", "n_multipliers", "n_axes"):
        for value in (-1, 2**40, 1.5, True, "1", None):
            damaged = rewritten(content, **{name: value})
            assert check_certificate(problem.points, damaged).reason is Reason.FIELD
        damaged = rewritten(content, **{name: 2**31 - 1})
        assert check_certificate(problem.points, damaged).reason in (
            Reason.TOO_LARGE,
                Reason.DAMAGED,
                Reason.DATA,
                Reason.FIELD,
                Reason.TREE,
        )  # fmt: skip
    for fields in ({"cost": "NaN"}, {"cost": -1.0}, {"lower_bound": None}, {"cost": [[]]},
                   {"weighted": 1}, {"data_sha256": 5}, {"more": 1}):  # fmt: skip
        assert (
            check_certificate(problem.points, rewritten(content, **fields)).reason is Reason.FIELD
        )
    bare = json.dumps({"cost": float("nan")}).encode()
    for text in (b"[" * 60_000, b"{}", b"[]", b"\xff\xfe", b'{"a":' * 9000, bare):
        damaged = content[:12] + struct.pack("<I", len(text)) + text
        assert check_certificate(problem.points, damaged).reason in (Reason.DAMAGED, Reason.FIELD)
    version = content[:8] + struct.pack("<I", 4) + content[12:]
    assert check_certificate(problem.points, version).reason is Reason.VERSION


def test_decompression_bomb(problem, genuine):
    import tracemalloc

    content = form.encode(genuine)
    bomb = zlib.compress(b"\0" * 50_000_000, 9)
    tracemalloc.start()
    try:
        answer = check_certificate(problem.points, rewritten(content, payload=bomb))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert answer.reason is Reason.DAMAGED
    assert peak < 5_000_000


def test_deep_tree(problem, genuine):
    # A chain of 200,000 splits of the same center.
    count = 200_000
    nodes = np.zeros(2 * count + 1, dtype=np.uint8)
    nodes[count:] = CODES["cluster"]
    zero = np.zeros(len(nodes), dtype=np.int64)
    made = change(genuine, kinds=nodes, first=zero, second=zero, values=zero * 0.5)
    assert reason(problem, made) is Reason.LIMIT


def test_invalid_pair_splits(problem, genuine):
    _, labels = brute_force(problem)
    root = root_proof(problem, labels, gap=1e-4)
    nodes = (PairSplit(2, 4), root.nodes[0], root.nodes[0])
    made = certificate(problem, labels, genuine.cost, Proof(0.0, root.center, root.axes, nodes))
    made = change(made, lower_bound=genuine.lower_bound)
    assert reason(problem, made) is Reason.BOUND  # the must-link child has one group less
    for first, second in ((4, 4), (-1, 3), (3, 10)):
        damaged = change(made, first=np.array([first, 0, 0]), second=np.array([second, -1, -1]))
        assert reason(problem, damaged) is Reason.TREE


def test_encode_decode(with_tree):
    back = form.decode(form.encode(with_tree))
    for name in type(with_tree).__slots__:
        before, after = getattr(with_tree, name), getattr(back, name)
        assert np.array_equal(before, after) if isinstance(before, np.ndarray) else before == after
    with pytest.raises(Rejection):
        form.decode(b"")
