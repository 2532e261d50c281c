"""Pairs in NumPy's files: whole numbers of shape (m, 2).

In a ``.npz`` the arrays ``ml`` (or ``must_link``) and ``cl`` (or ``cannot_link``) say their kind
by their names; a single array of any other name is read as that of a ``.npy``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certikmeans.errors import InputError
from certikmeans.problem.files.arrays import read_archive, read_array
from certikmeans.problem.files.text import listed
from certikmeans.problem.links import Links

_NAMED = "np.savez(path, ml=must_links, cl=cannot_links)"
_LARGEST = 2**53
_KINDS = {"ml": "must", "must_link": "must", "cl": "cannot", "cannot_link": "cannot"}


def read_array_links(path: Path, kind: str | None, base: int) -> tuple[Links, Links]:
    """Return the must-links and the cannot-links; ``kind`` is that of arrays without a name."""
    if path.suffix.lower() == ".npy":
        found = {_told(kind, str(path)): _links(read_array(path), str(path), base)}
    else:
        found = _from_archive(path, kind, base)
    nothing = Links(np.empty((0, 2), dtype=np.int64), str(path), None, base, from_file=True)
    return found.get("must", nothing), found.get("cannot", nothing)


def _from_archive(path: Path, kind: str | None, base: int) -> dict[str, Links]:
    arrays = read_archive(path)
    if not arrays or (len(arrays) > 1 and not all(name in _KINDS for name in arrays)):
        raise InputError(
            f"{path}: cannot tell which arrays hold pairs: {listed(arrays) or 'there is none'}",
            hint=f"save them as {_NAMED}",
        )
    found: dict[str, Links] = {}
    for name, array in arrays.items():
        where = f"{path}: {name}"
        own = _KINDS[name] if name in _KINDS else _told(kind, where)
        if own in found:
            raise InputError(
                f"{where}: there is another array of {own}-links", hint="join the two into one"
            )
        found[own] = _links(array, where, base)
    return found


def _told(kind: str | None, where: str) -> str:
    if kind is None:
        raise InputError(
            f"{where}: the pairs do not say their kind",
            hint=f"say it for the whole file, kind='must' or kind='cannot', or save {_NAMED}",
        )
    return kind


def _links(array: NDArray[Any], where: str, base: int) -> Links:
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iuf":
        raise InputError(
            f"{where}: expected pairs, got {array.dtype} of shape {array.shape}",
            hint="save whole numbers of shape (m, 2), one pair of point indices per row",
        )
    bad = _not_points(array, base)
    if bad.any():
        row = int(np.flatnonzero(bad.any(axis=1))[0])
        raise InputError(
            f"{where}[{row}]: {tuple(array[row].tolist())} is not a pair of points",
            hint=f"points are named by their row number, a whole number from {base} on",
        )
    pairs = array.astype(np.int64)
    pairs -= base
    return Links(pairs, where, None, base, from_file=True)


def _not_points(array: NDArray[Any], base: int) -> NDArray[np.bool_]:
    """Where there is no row number."""
    if array.dtype.kind == "f":
        whole = np.isfinite(array) & (np.abs(array) < _LARGEST) & (array == np.floor(array))
        bad: NDArray[np.bool_] = ~(whole & (array >= base))
        return bad
    if not array.size or (array.min() >= base and array.max() < _LARGEST):
        return np.zeros((0, 2), dtype=bool)
    outside: NDArray[np.bool_] = (array < base) | (array >= _LARGEST)
    return outside
