"""Which labels are known, and which of them are equal."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from certikmeans.errors import InputError

_MISSING = {"", "nan", "<na>"}


def label_array(labels: ArrayLike | Iterable[Any]) -> NDArray[Any]:
    """Return labels as a one-dimensional array that still tells text from missing values."""
    if not hasattr(labels, "__array__"):
        values = list(labels)  # type: ignore[arg-type]
        # Next to text, numpy would turn None and NaN into the words "None" and "nan".
        has_text = any(isinstance(value, str) for value in values)
        labels = np.array(values, dtype=object if has_text else None)
    array = np.asarray(labels)
    if array.ndim != 1 or array.dtype.kind not in "biufOSU":
        raise InputError(
            f"labels: expected one label per point, got {array.dtype} of shape {array.shape}",
            hint="pass whole numbers or text; -1, None, NaN or empty text means unknown",
        )
    return array


def known_classes(
    labels: NDArray[Any], unknown: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows whose label is known, and for each its class, numbered from 0.

    >>> known_classes(label_array(["a", None, "b", "a"]), unknown=-1)
    (array([0, 2, 3]), array([0, 1, 0]))
    """
    if labels.dtype.kind in "OSU":
        values = labels.tolist()
        # In order of appearance, not through a set: text hashes differ from run to run.
        forms = {value: _comparable(value) for value in dict.fromkeys(values)}
        codes = {form: code for code, form in enumerate(dict.fromkeys(forms.values()))}
        codes |= dict.fromkeys(("", _comparable(unknown)), -1)
        keys = np.array([codes[forms[value]] for value in values], dtype=np.int64)
        known = keys >= 0
    else:
        number = unknown if isinstance(unknown, int | float | np.number) else np.nan
        known = (labels == labels) & (labels != number)  # NaN differs from itself
        keys = labels
    rows = np.flatnonzero(known)
    classes = np.unique(keys[rows], return_inverse=True)[1]
    return rows, classes.astype(np.int64)


def _comparable(value: Any) -> str:
    """Return a text that is the same for equal labels, empty for a missing one.

    >>> [_comparable(value) for value in ("1.0", 1, " a ", None, np.nan, 12345678901234567890)]
    ['1', '1', 'a', '', '', '12345678901234567890']
    """
    if value is None:
        return ""
    text = (value.decode() if isinstance(value, bytes) else str(value)).strip()
    if text.lower() in _MISSING:
        return ""
    try:
        return str(int(text))
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return text
    if math.isinf(number):  # too many digits for a number: told apart as text
        return text
    return str(int(number)) if number.is_integer() else repr(number)
