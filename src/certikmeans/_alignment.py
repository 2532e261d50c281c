"""Arguments of `fit` that name samples: aligned with the index of a DataFrame, found by label.

A DataFrame whose index is 0, 1, 2, ... has no labels: rows are named by position. Any other index
names the rows.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, final

import numpy as np

from certikmeans._numbers import count
from certikmeans.constraint_model.soft_pairs import PricedPairs
from certikmeans.errors import InputError
from certikmeans.problem.links import (
    Links,
    as_links,
    id_rows,
    links_by_id,
    priced_rows_by_id,
    rows_by_id,
)

_BY_POSITION = "to go by position, pass an array: .to_numpy()"
_MAX_SHOWN = 5
# Functions of scikit-learn that fit a clone to a part of the samples.
_SPLITTERS = ("_fit_and_score", "_fit_and_predict")


@final
class SampleIndex:
    """Names of the rows of X.

    Parameters
    ----------
    X : array-like or DataFrame
        The samples, as given to `fit`.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"x": [1.0, 2.0, 9.0]}, index=["ann", "bob", "eve"])
    >>> index = SampleIndex(X)
    >>> index.align("partial_labels", pd.Series({"eve": 1}), missing=-1).tolist()
    [-1, -1, 1]
    >>> index.pairs("must_link", [("eve", "bob")]).pairs
    array([[2, 1]])
    """

    def __init__(self, X: Any) -> None:
        self._index = X.index if hasattr(X, "iloc") and hasattr(X, "index") else None
        self._labels: list[Hashable] | None = None
        if self._index is not None and not _is_default(self._index):
            self._labels = list(self._index)
        self._n_samples = len(X) if hasattr(X, "__len__") else 0

    @property
    def is_labelled(self) -> bool:
        """Whether rows have names of their own."""
        return self._labels is not None

    def align(self, name: str, values: Any, missing: Any = None) -> Any:
        """Return values in the order of the rows.

        Parameters
        ----------
        name : str
            Name of the argument.
        values : Series, DataFrame, mapping, array-like or None
            A Series, a DataFrame or a mapping is aligned by label; all else is in order already.
        missing : optional
            Value of the rows that are not named. By default every row has to be.
        """
        if isinstance(values, Mapping):
            return self._from_mapping(name, values, missing)
        if self._index is None or not (hasattr(values, "iloc") and hasattr(values, "index")):
            return values
        own = values.index
        if len(own) == len(self._index) and bool((own == self._index).all()):
            return values
        if _is_default(own) and not self.is_labelled:
            return values  # two tables that count rows: another length is reported later
        for what, index in (("X", self._index), (name, own)):
            if not index.is_unique:
                raise InputError(
                    f"{name}: its index differs from that of X, and the index of {what} names "
                    "some rows twice",
                    hint=f"give both the same index; {_BY_POSITION}",
                )
        unknown = own[~own.isin(self._index)]
        if len(unknown):
            raise InputError(
                f"{name}: its index does not match that of X, which has no {_shown(unknown)}",
                hint=f"select the rows of X, {name}.loc[X.index]; {_BY_POSITION}",
            )
        left_out = self._index[~self._index.isin(own)]
        if len(left_out) and missing is None:
            raise _missing_rows(name, left_out)
        if not len(left_out):
            return values.loc[self._index]
        # Without a fill value, whole numbers would become floats.
        whole = getattr(getattr(values, "dtype", None), "kind", "") == "i"
        return values.reindex(self._index, **({"fill_value": missing} if whole else {}))

    def _from_mapping(self, name: str, values: Mapping[Any, Any], missing: Any) -> Any:
        names: Iterable[Hashable] = range(self._n_samples)
        if self._index is not None:
            names = self._labels if self._labels is not None else names
        rows = rows_by_id(names)
        unknown = [one for one in values if one not in rows]
        if unknown:
            what = "the index of X" if self.is_labelled else f"X, of {len(rows)} rows,"
            raise InputError(
                f"{name}: {what} has no {_shown(unknown)}",
                hint="name rows by the index of X; 7 is not '7'"
                if self.is_labelled
                else "name rows by their number, counted from 0",
            )
        left_out = [one for one in rows if one not in values]
        if left_out and missing is None:
            raise _missing_rows(name, left_out)
        return [values.get(one, missing) for one in rows]

    def pairs(self, name: str, pairs: Any) -> Any:
        """Return pairs by row number; where rows have names, pairs are looked up by name.

        `Links` are row numbers. Whole numbers are row numbers if no row is named by one.
        """
        if pairs is None:
            return None
        if isinstance(pairs, Links) or self._labels is None:
            _reject_in_cross_validation(name)
            return pairs
        rows = id_rows(pairs, name, 2)
        if self._are_positions(rows):
            _reject_in_cross_validation(name)
            return as_links(pairs, name)
        return _looked_up(links_by_id, rows, name, self._labels)

    def priced_pairs(self, name: str, rows: Any) -> Any:
        """Return rows ``(i, j, penalty)`` by row number; see `pairs`."""
        if rows is None:
            return None
        if isinstance(rows, PricedPairs) or self._labels is None:
            _reject_in_cross_validation(name)
            return rows
        triples = id_rows(rows, name, 3)
        if self._are_positions([row[:2] for row in triples]):
            _reject_in_cross_validation(name)
            return triples
        return _looked_up(priced_rows_by_id, triples, name, self._labels)

    def _are_positions(self, rows: list[tuple[Hashable, ...]]) -> bool:
        assert self._labels is not None
        return all(_is_whole(one) for row in rows for one in row) and not any(
            _is_whole(label) for label in self._labels
        )


def _looked_up(read: Any, rows: Any, name: str, labels: list[Hashable]) -> Any:
    try:
        return read(rows, name, rows_by_id(labels))
    except InputError as error:
        raise InputError(
            error.message,
            hint="pairs name rows by the index of X; to name them by position, pass "
            "X.reset_index(drop=True)",
        ) from error


def _is_whole(one: Any) -> bool:
    return (
        isinstance(one, int | np.integer) or (isinstance(one, float) and one.is_integer())
    ) and not isinstance(one, bool)


def _is_default(index: Any) -> bool:
    """Whether an index counts the rows."""
    if index.dtype.kind not in "iu" or getattr(index, "nlevels", 1) > 1:
        return False
    return bool((np.asarray(index) == np.arange(len(index))).all())


def _shown(labels: Iterable[Any]) -> str:
    every = list(labels)
    more = f" and {len(every) - _MAX_SHOWN:,} more" if len(every) > _MAX_SHOWN else ""
    return ", ".join(repr(one)[:40] for one in every[:_MAX_SHOWN]) + more


def _missing_rows(name: str, left_out: Iterable[Any]) -> InputError:
    return InputError(
        f"{name}: there is no value for {_shown(left_out)}",
        hint=f"give a value for every row of X, for example {name}.reindex(X.index, fill_value=1)",
    )


def inside_cross_validation() -> bool:
    """Whether scikit-learn is fitting a part of the samples of a larger table."""
    frame = sys._getframe(1).f_back
    while frame is not None:
        if frame.f_code.co_name in _SPLITTERS and str(
            frame.f_globals.get("__name__", "")
        ).startswith("sklearn.model_selection"):
            return True
        frame = frame.f_back
    return False


def _reject_in_cross_validation(name: str) -> None:
    """Reject row numbers where scikit-learn fits a part of the table that they are about."""
    if inside_cross_validation():
        raise InputError(
            f"{name}: pairs name rows of the whole table, and cross-validation fits a part "
            "of it, in which other samples have these numbers",
            hint="loop over the folds and pass constraints=known.subset(train), where known is a "
            "Constraints object; partial_labels and groups are split with the samples",
        )


def check_column_types(X: Any) -> None:
    """Reject columns of a DataFrame that are no numbers or have missing values, by name."""
    if not (hasattr(X, "iloc") and hasattr(X, "dtypes") and hasattr(X, "columns")):
        return
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        text = str(dtype)
        if text.startswith(("datetime", "timedelta", "period")):
            raise InputError(
                f"X: column {name!r} holds times ({text}), not numbers",
                hint="convert it, for example (df[c] - df[c].min()).dt.total_seconds(), "
                "or leave the column out",
            )
        if text == "category" and getattr(dtype, "categories", np.empty(0)).dtype.kind not in "iuf":
            raise InputError(
                f"X: column {name!r} holds categories, not numbers",
                hint="encode it, for example with pandas.get_dummies, or leave the column out; "
                "known classes of the samples belong into partial_labels",
            )
    missing = X.isna().sum()
    if len(missing) and missing.max() > 0:
        name, number = missing.idxmax(), int(missing.max())
        raise InputError(
            f"X: column {name!r} has {count(number, 'missing value')} (NaN)",
            hint="drop these rows or columns, or fill them: X.dropna(), X.fillna(X.median()), or "
            "a pipeline with sklearn.impute.SimpleImputer",
        )
