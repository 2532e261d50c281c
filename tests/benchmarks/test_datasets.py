"""Instances by name: readers, samples, pairs."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.datasets.instances import AbsentError, Instance, build
from benchmarks.datasets.paper import SAMPLES, real
from benchmarks.datasets.published import data_dir
from benchmarks.datasets.spnet3d import FILE_NAME, read_spnet3d
from benchmarks.objective import recomputed_cost, scores

from certikmeans.errors import InputError


def test_the_uci_file_gives_three_features_without_the_road_number(tmp_path):
    path = tmp_path / FILE_NAME
    path.write_text("144552912,9.3498486,56.7408757,17.0527715677876\n144552912,9.35,56.74,17.6\n")
    points = read_spnet3d(path)
    assert points.tolist() == [[9.3498486, 56.7408757, 17.0527715677876], [9.35, 56.74, 17.6]]


@pytest.mark.parametrize("text", ["1,2,3\n", "1,2,x,4\n"])
def test_another_file_of_that_name_is_refused(tmp_path, text):
    (tmp_path / FILE_NAME).write_text(text)
    with pytest.raises(InputError, match=FILE_NAME):
        read_spnet3d(tmp_path / FILE_NAME)


def test_the_sample_of_the_road_network_is_fixed_and_without_repetition(tmp_path, monkeypatch):
    monkeypatch.setitem(SAMPLES, "spnet3D_5", 20)
    rng = np.random.default_rng(3)
    rows = np.column_stack([np.arange(60), rng.normal(size=(60, 3))])
    np.savetxt(tmp_path / FILE_NAME, rows, delimiter=",")
    one, other = real("spnet3D_5", tmp_path), real("spnet3D_5", tmp_path)
    assert one is not None
    assert other is not None
    assert len(np.unique(one.points, axis=0)) == 20
    assert np.array_equal(one.points, other.points)
    assert not one.has_classes


def test_absent_data_are_named(tmp_path):
    with pytest.raises(AbsentError, match=FILE_NAME):
        build(Instance("SPNET3D", "ML"), tmp_path)
    with pytest.raises(AbsentError, match=r"hemi\.npz"):
        build(Instance("Hemi", "CL"), None)


@pytest.mark.parametrize(
    ("instance", "must", "cannot"),
    [
        (Instance("Syn-1200", "ML", 64), 18, 0),
        (Instance("Syn-1200", "CL", 2), 0, 600),
        (Instance("Syn-1200", "ML+CL"), 300, 300),
        (Instance("Iris", "none"), 0, 0),
    ],
)
def test_pairs_are_as_many_as_asked_for(instance, must, cannot):
    problem = build(instance, None).problem
    assert (len(problem.must_link), len(problem.cannot_link)) == (must, cannot)


def test_iris_without_the_published_files_draws_its_pairs():
    built = build(Instance("Iris", "CL"), None)
    assert built.pairs == "drawn from classes"
    assert len(built.problem.cannot_link) == 37
    assert built.classes is not None


@pytest.mark.skipif(data_dir(None) is None, reason="the data sets are not here")
def test_published_rows_are_used_and_their_classes_are_in_the_same_order():
    for dataset in ("Iris", "Seeds"):
        built = build(Instance(dataset, "ML+CL"), data_dir(None))
        assert built.pairs.startswith("published, ")
        assert built.classes is not None
        # Classes in another order than the rows would cost several times as much.
        shuffled = np.random.default_rng(0).permutation(built.classes)
        cost = recomputed_cost(built.problem, built.classes)
        assert cost < 0.5 * recomputed_cost(built.problem, shuffled)


def test_purity_counts_the_largest_class_of_each_cluster():
    found = scores(np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 1, 1]))
    assert found["purity"] == pytest.approx((2 + 2) / 6)
