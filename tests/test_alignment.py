"""Arguments of `fit` that name samples of a DataFrame: by label, by position, or an error."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from certikmeans import ConstrainedKMeans, Constraints, InputError, elbow
from certikmeans._alignment import SampleIndex

NAMES = ["ann", "bob", "eve", "kim", "lea", "max", "pia", "tom"]
POINTS = np.array([[0.0], [1.0], [2.0], [3.0], [10.0], [11.0], [12.0], [13.0]])
FRAME = pd.DataFrame(POINTS, columns=["x"], index=NAMES)
KNOWN = pd.Series({"tom": 0, "ann": 0, "max": 1})


@pytest.fixture
def model():
    return ConstrainedKMeans(2, random_state=0)


def expected(**given):
    return ConstrainedKMeans(2, random_state=0).fit(POINTS, **given).labels_.tolist()


@pytest.mark.parametrize(
    "labels",
    [
        KNOWN,
        KNOWN.to_dict(),
        KNOWN.reindex(NAMES),
        KNOWN.reindex(NAMES[::-1]),
        KNOWN.map({0: "a", 1: "b"}),
        KNOWN.astype("category"),
        KNOWN.astype("Int64"),
        KNOWN.map({0: "a", 1: "b"}).to_dict(),
    ],
    ids=["known", "dict", "aligned", "reversed", "text", "category", "nullable", "names"],
)
def test_partial_labels_by_label(model, labels):
    by_position = [0, -1, -1, -1, -1, 1, -1, 0]
    assert model.fit(FRAME, partial_labels=labels).labels_.tolist() == expected(
        partial_labels=by_position
    )


def test_missing_values_are_named_by_column():
    table = pd.DataFrame({"age": [1.0, 2.0, None], "size": [None, 5.0, None]})
    with pytest.raises(InputError, match=r"column 'size' has 2 missing values \(NaN\)"):
        ConstrainedKMeans(n_clusters=2).fit(table)


def test_series_by_position_without_an_index(model):
    labels = pd.Series([0, -1, -1, -1, -1, 1, -1, 0], index=range(100, 108))
    assert model.fit(POINTS, partial_labels=labels).labels_.tolist() == expected(
        partial_labels=labels.tolist()
    )
    assert model.fit(POINTS, partial_labels={7: 0, 0: 0, 5: 1}).labels_.tolist() == expected(
        partial_labels=labels.tolist()
    )


@pytest.mark.parametrize("name", ["sample_weight", "demand"])
def test_numbers_of_samples_are_aligned(name):
    values = pd.Series(np.arange(1.0, 9.0), index=NAMES)
    index = SampleIndex(FRAME)
    shuffled = values.sample(frac=1.0, random_state=1)
    assert list(index.align(name, shuffled)) == values.tolist()
    assert index.align(name, shuffled.to_dict()) == values.tolist()
    with pytest.raises(InputError, match=f"{name}: there is no value for 'tom'"):
        index.align(name, values.iloc[:-1])
    with pytest.raises(InputError, match=f"{name}: there is no value for 'tom'"):
        index.align(name, values.iloc[:-1].to_dict())


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (pd.Series({"ann": 0, "zoe": 1}), "does not match that of X, which has no 'zoe'"),
        ({"zoe": 1}, "the index of X has no 'zoe'"),
        (pd.Series(range(8)), "does not match that of X, which has no 0, 1, 2, 3, 4 and 3 more"),
        (pd.Series([1, 2], index=["ann", "ann"]), "names some rows twice"),
    ],
)
def test_mismatch_is_an_error(model, labels, message):
    with pytest.raises(InputError) as caught:
        model.fit(FRAME, partial_labels=labels)
    assert caught.value.message.startswith("partial_labels: ")
    assert message in caught.value.message
    assert caught.value.hint


def test_unknown_row_number_in_a_dictionary(model):
    with pytest.raises(InputError, match="X, of 8 rows, has no 9"):
        model.fit(POINTS, partial_labels={9: 1})


def test_two_tables_that_count_rows(model):
    with pytest.raises(InputError, match="3 labels, but there are 8 samples"):
        model.fit(pd.DataFrame(POINTS), partial_labels=pd.Series([0, 0, 1]))


@pytest.mark.parametrize(
    "pairs",
    [
        [("bob", "pia")],
        np.array([["bob", "pia"]]),
        pd.DataFrame({"one": ["bob"], "other": ["pia"]}),
        [(1, 6)],
        [(1.0, 6.0)],
        Constraints(must_link=[(1, 6)]).as_fit_params(8)["must_link"],
    ],
)
def test_pairs_by_label_and_by_position(model, pairs):
    found = model.fit(FRAME, must_link=pairs).labels_
    assert found.tolist() == expected(must_link=[(1, 6)])
    assert found[1] == found[6]


def test_pairs_by_numbers_in_the_index(model):
    numbered = FRAME.set_axis([3, 2, 1, 0, 10, 11, 12, 13])
    found = model.fit(numbered, must_link=[(3, 13)], cannot_link=[(0, 1)]).labels_
    assert found.tolist() == expected(must_link=[(0, 7)], cannot_link=[(3, 2)])
    links = Constraints(must_link=[(0, 7)], cannot_link=[(3, 2)]).as_fit_params(8)
    assert model.fit(numbered, **links).labels_.tolist() == found.tolist()
    with pytest.raises(InputError, match="must_link: the index has no 7") as caught:
        model.fit(numbered, must_link=[(3, 7)])
    assert "reset_index(drop=True)" in caught.value.hint


def test_repeated_labels_in_the_index(model):
    repeated = FRAME.set_axis([5] * 8)
    with pytest.raises(InputError, match="not every id is the id of one row"):
        model.fit(repeated, must_link=[(5, 5)])


def test_default_index_counts_rows(model):
    frame = FRAME.reset_index(drop=True)
    assert model.fit(frame, must_link=[(1, 6)]).labels_.tolist() == expected(must_link=[(1, 6)])


@pytest.mark.parametrize("X", [POINTS, FRAME, pd.DataFrame(POINTS)], ids=["array", "ids", "rows"])
@pytest.mark.parametrize("wrapped", [False, True])
def test_row_numbers_inside_cross_validation(X, wrapped, model):
    prefix = "constrainedkmeans__" if wrapped else ""
    model = make_pipeline(StandardScaler(), model) if wrapped else model
    folds = KFold(2, shuffle=True, random_state=0)
    with pytest.raises((InputError, ValueError)) as caught:
        cross_val_score(
            model, X, cv=folds, params={f"{prefix}must_link": [(0, 5)]}, error_score="raise"
        )
    assert "must_link: " in str(caught.value)


def test_labels_of_samples_inside_cross_validation(model):
    labels = [0, -1, -1, -1, 1, -1, -1, -1]
    search = GridSearchCV(model, {"n_clusters": [2]}, cv=2, error_score="raise")
    search.fit(FRAME, partial_labels=labels)
    assert np.isfinite(search.best_score_)


def test_elbow_aligns(model):
    found = elbow(FRAME, [2], partial_labels=KNOWN, must_link=[("bob", "pia")])
    assert found.results[0].labels[1] == found.results[0].labels[6]


def test_columns_that_are_no_numbers(model):
    times = FRAME.assign(when=pd.date_range("2024-01-01", periods=8))
    with pytest.raises(InputError, match="column 'when' holds times") as caught:
        model.fit(times)
    assert "dt.total_seconds" in caught.value.hint
    kinds = FRAME.assign(kind=pd.Categorical(list("aabbccdd")))
    with pytest.raises(InputError, match="column 'kind' holds categories") as caught:
        model.fit(kinds)
    assert "get_dummies" in caught.value.hint


def test_soft_pairs_and_sets_by_label():
    index = SampleIndex(FRAME)
    rows = index.priced_pairs("soft_must_link", [("bob", "pia", 2.5)])
    assert rows == [[1, 6, 2.5]]
    assert index.priced_pairs("soft_must_link", [(1, 6, 2.5)]) == [(1, 6, 2.5)]
    groups = index.align("cannot_link_groups", pd.Series({"tom": 4, "ann": 4}), missing=-1)
    assert groups.tolist() == [4, -1, -1, -1, -1, -1, -1, 4]
    with pytest.raises(InputError, match="expected \\(id, id, penalty\\)"):
        index.priced_pairs("soft_must_link", [("bob", "pia")])
