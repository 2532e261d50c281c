"""Instances by name: readers, samples, pairs."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.datasets import highdim, many
from benchmarks.datasets.base import MissingDataError, Sizes
from benchmarks.datasets.paper import SAMPLES, SPNET3D_FILE, Instance, read_spnet3d, real
from benchmarks.datasets.published import data_dir
from benchmarks.metrics import recomputed_cost, scores, violated_pairs

from certikmeans.errors import InputError


def test_road_network_file_has_three_features(tmp_path):
    path = tmp_path / SPNET3D_FILE
    path.write_text("144552912,9.3498486,56.7408757,17.0527715677876\n144552912,9.35,56.74,17.6\n")
    points = read_spnet3d(path)
    assert points.tolist() == [[9.3498486, 56.7408757, 17.0527715677876], [9.35, 56.74, 17.6]]


@pytest.mark.parametrize("text", ["1,2,3\n", "1,2,x,4\n"])
def test_other_file_of_same_name_is_rejected(tmp_path, text):
    (tmp_path / SPNET3D_FILE).write_text(text)
    with pytest.raises(InputError, match=SPNET3D_FILE):
        read_spnet3d(tmp_path / SPNET3D_FILE)


def test_road_network_sample_is_fixed(tmp_path, monkeypatch):
    monkeypatch.setitem(SAMPLES, "spnet3D_5", 20)
    rng = np.random.default_rng(3)
    rows = np.column_stack([np.arange(60), rng.normal(size=(60, 3))])
    np.savetxt(tmp_path / SPNET3D_FILE, rows, delimiter=",")
    one, other = real("spnet3D_5", tmp_path), real("spnet3D_5", tmp_path)
    assert len(np.unique(one.points, axis=0)) == 20
    assert np.array_equal(one.points, other.points)
    assert not one.has_classes


def test_absent_data_are_named(tmp_path):
    with pytest.raises(MissingDataError, match=SPNET3D_FILE):
        Instance("SPNET3D", "ML").build(tmp_path)
    with pytest.raises(MissingDataError, match=r"hemi\.npz"):
        Instance("Hemi", "CL").build(None)


@pytest.mark.parametrize(
    ("instance", "must", "cannot"),
    [
        (Instance("Syn-1200", "ML", 64), 18, 0),
        (Instance("Syn-1200", "CL", 2), 0, 600),
        (Instance("Syn-1200", "ML+CL"), 300, 300),
        (Instance("Iris", "none"), 0, 0),
    ],
)
def test_number_of_pairs(instance, must, cannot):
    problem = instance.build(None).problem
    assert (len(problem.must_link), len(problem.cannot_link)) == (must, cannot)


def test_iris_pairs_without_published_files():
    built = Instance("Iris", "CL").build(None)
    assert built.pairs == "SUBSTITUTE for the published pairs, drawn from classes"
    assert len(built.problem.cannot_link) == 37
    assert built.classes is not None
    here = Instance("Iris", "CL").with_pairs_of(None)
    assert here.name == "Iris CL (substitute pairs)"
    assert here.build(None).pairs == built.pairs
    assert Instance("Hemi", "CL").with_pairs_of(None).name == "Hemi CL"


@pytest.mark.skipif(data_dir(None) is None, reason="the data sets are not here")
def test_published_rows_and_classes():
    for dataset in ("Iris", "Seeds"):
        built = Instance(dataset, "ML+CL").build(data_dir(None))
        assert built.pairs.startswith("published, ")
        assert built.classes is not None
        # Classes in another order than the rows would cost several times as much.
        shuffled = np.random.default_rng(0).permutation(built.classes)
        cost = recomputed_cost(built.problem, built.classes)
        assert cost < 0.5 * recomputed_cost(built.problem, shuffled)


def test_purity():
    found = scores(np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 1, 1]))
    assert found["purity"] == pytest.approx((2 + 2) / 6)


def _data():
    directory = data_dir(None)
    if directory is None:
        pytest.skip("the data sets are not here")
    return directory


def test_highdim_rows():
    known = {one.name: one for one in highdim.recipes()}
    names = [one.name for one in highdim.recipes()]
    assert len(names) == len(set(names))
    for name, limit, gap in (
        ("breast cancer", 15, 1e-3), ("avoc_abalone", 5, 1e-3), ("digits", 120, 5e-3),
        ("satimage", 180, 3e-3), ("segment", 120, 3e-3), ("avoc_facebook", 180, 5e-3),
        ("pendigits", 180, 1.5e-2), ("mnist10k", 600, 1.5e-2),
        ("blobs 2,000 x 50 K=5 spread 4", 30, 1e-3), ("blobs 50,000 x 30 K=10 spread 1", 15, 1e-3),
        ("blobs 200,000 x 30 K=10 spread 4", 30, 1e-3),
        ("blobs 50,000 x 30 K=10 spread 5", 60, 2e-3),
        ("blobs 50,000 x 30 K=10 spread 5, n/10 ML+CL", 60, 4e-3),
        ("digits, n/10 ML+CL", 120, 1e-2),
    ):  # fmt: skip
        facts = known[name].facts
        assert (facts["limit"], facts["gap"]) == (limit, pytest.approx(gap)), name
    assert known["mnist10k"].facts["aim"] == 1e-2
    assert "avoc_abalone, n/10 ML+CL" not in known  # there are no classes to draw from
    assert sum(one.facts["group"] == "wide" for one in known.values()) == 16


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("breast cancer", (569, 30, 2, 0, 0)),
        ("digits, n/10 ML+CL", (1797, 64, 10, 179, 179)),
        ("blobs 2,000 x 10 K=5 spread 4", (2000, 10, 5, 0, 0)),
        ("blobs 500 x 700 K=4 spread 4, 250 pairs", (500, 700, 4, 125, 125)),
    ],
)
def test_instances_without_files(name, sizes):
    recipe = next(one for one in highdim.recipes() if one.name == name)
    assert _sizes(recipe.build(None)) == sizes


def _sizes(built):
    sizes = Sizes.of(built.problem)
    return (
        sizes.n_points,
        sizes.n_features,
        sizes.n_clusters,
        sizes.n_must_link,
        sizes.n_cannot_link,
    )


def test_breast_cancer_is_standardised():
    built = highdim.make_real("breast cancer", False, None)
    assert np.allclose(built.problem.points.std(axis=0), 1.0)


@pytest.mark.parametrize(("name", "shape"), [("segment", (2310, 18)), ("avoc_abalone", (4177, 10))])
def test_files_with_many_axes(name, shape):
    built = highdim.make_real(name, False, _data())
    assert built.problem.points.shape == shape
    assert (built.classes is None) == name.startswith("avoc")


def test_published_instances_with_more_clusters():
    found = list(highdim.small_recipes(_data()))
    names = [one.name for one in found]
    assert len(names) == len(set(names)) == 49 + 4 * 3 * 2
    built = found[-1].build(_data())
    assert built.problem.n_clusters == 8
    assert len(built.problem.cannot_link)


def test_many_clusters_rows_have_published_times():
    known = {one.name: one.facts for one in many.recipes()}
    assert len(known) == 25 + 12 + 5
    assert known["u2152 K=20"]["printed_seconds"] == pytest.approx(10.3 * 3600)
    assert known["u2152 K=50"]["printed_root_gap"] == pytest.approx(0.0014)
    assert (known["u2152 K=50"]["limit"], known["u2152 K=60"]["limit"]) == (300, 60)
    assert known["fl3795 K=40"]["limit"] == 300
    assert known["gr666 K=10"]["sdp_seconds"] == 14553
    assert (known["pr299 K=2"]["gap"], known["fl3795 K=80"]["gap"]) == (1e-4, 1e-3)
    assert known["synthetic n=500 K=100, 1,000 pairs"]["gap"] == 1e-2


def test_plane_points_and_published_pairs():
    assert _sizes(many.make_plane("pr299", 4, _data()))[:3] == (299, 2, 4)
    built = many.make_published_pairs(500, 20, 500, _data())
    assert _sizes(built)[:3] == (500, 2, 20)
    assert len(built.problem.must_link) + len(built.problem.cannot_link) == 500
    # The pairs were drawn from the classes, so the classes respect them.
    assert violated_pairs(built.problem, built.classes) == 0


def test_soft_pairs_are_refused(tmp_path):
    path = tmp_path / "pairs.json"
    path.write_text('{"ml": [[0, 1]], "cl": [[2, 3]], "sml": [], "scl": []}')
    must, cannot = many.read_pccc_pairs(path)
    assert (must.tolist(), cannot.tolist()) == ([[0, 1]], [[2, 3]])
    path.write_text('{"ml": [], "cl": [], "sml": [[0, 1]], "sml_proba": [0.7]}')
    with pytest.raises(InputError, match="soft pairs"):
        many.read_pccc_pairs(path)


def test_missing_files_are_named(tmp_path):
    with pytest.raises(MissingDataError, match=r"plane/u1060\.txt"):
        many.make_plane("u1060", 10, tmp_path)
    with pytest.raises(MissingDataError, match=r"highdim/mnist10k\.npz"):
        highdim.make_real("mnist10k", False, None)
