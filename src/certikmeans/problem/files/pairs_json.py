"""Pairs in JSON: ``{"ml": [[0, 1]], "cl": [[1, 2]], "groups": [[3, 4, 5]]}``.

``must_link`` and ``cannot_link`` are accepted for ``ml`` and ``cl``; every key is optional.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certikmeans.errors import InputError
from certikmeans.problem.constraints import chain_pairs
from certikmeans.problem.files.text import did_you_mean
from certikmeans.problem.links import Links

_MUST, _CANNOT, _GROUPS = ("ml", "must_link"), ("cl", "cannot_link"), ("groups",)
_KEYS = (*_MUST, *_CANNOT, *_GROUPS)


def read_json_links(text: str, path: str, base: int) -> tuple[Links, Links]:
    """Return the must-links and the cannot-links; groups become chains of must-links."""
    content = _parsed(text, path)
    must_key, must = _pairs(content, _MUST, path, base)
    cannot_key, cannot = _pairs(content, _CANNOT, path, base)
    _, groups = _one_of(content, _GROUPS, path)
    if groups:
        members, lengths = _members(groups, f"{path}: groups", base, exactly_two=False)
        chains, _ = chain_pairs(members, lengths)
        must = np.concatenate([must, chains])
        # A position counts the pairs as they are written out, so the origin must say so.
        must_key = f"{must_key}, then groups as pairs" if must_key in content else "groups as pairs"
    return (
        Links(must - base, f"{path}: {must_key}", None, base, from_file=True),
        Links(cannot - base, f"{path}: {cannot_key}", None, base, from_file=True),
    )


def _parsed(text: str, path: str) -> dict[str, Any]:
    def unique(items: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in items]
        for key in keys:
            if keys.count(key) > 1:
                raise InputError(
                    f"{path}: the key {key!r} occurs twice", hint="join the two lists into one"
                )
        return dict(items)

    try:
        content = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}, line {error.lineno}, column {error.colno}: not valid JSON: {error.msg}",
            hint='expected {"ml": [[0, 1]], "cl": [[1, 2]]}',
        ) from error
    if not isinstance(content, dict):
        raise InputError(
            f"{path}: expected an object with lists of pairs, got {type(content).__name__}",
            hint='expected {"ml": [[0, 1]], "cl": [[1, 2]]}',
        )
    unknown = [key for key in content if key not in _KEYS]
    if unknown:
        raise InputError(
            f"{path}: unknown key {', '.join(map(repr, unknown))}",
            hint=did_you_mean(unknown[0], _KEYS) + f"known keys: {', '.join(_KEYS)}",
        )
    return content


def _one_of(content: dict[str, Any], keys: tuple[str, ...], path: str) -> tuple[str, list[Any]]:
    present = [key for key in keys if key in content]
    if len(present) > 1:
        raise InputError(
            f"{path}: {present[0]!r} and {present[1]!r} mean the same",
            hint="join the two lists into one",
        )
    key = present[0] if present else keys[0]
    value = content.get(key, [])
    if not isinstance(value, list):
        raise InputError(
            f"{path}: {key}: expected a list, got {value!r}", hint='expected "ml": [[0, 1], ...]'
        )
    return key, value


def _pairs(
    content: dict[str, Any], keys: tuple[str, ...], path: str, base: int
) -> tuple[str, NDArray[np.int64]]:
    key, value = _one_of(content, keys, path)
    members, _ = _members(value, f"{path}: {key}", base, exactly_two=True)
    return key, members.reshape(-1, 2)


def _members(
    items: list[Any], where: str, base: int, *, exactly_two: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return all indices in one row, and how many belong to each item."""
    expected = "a pair [i, j]" if exactly_two else "a group [i, j, ...] of two or more points"
    for at, item in enumerate(items):
        if (
            not isinstance(item, list)
            or (len(item) != 2 if exactly_two else len(item) < 2)
            or any(type(index) is not int or not base <= index < 2**53 for index in item)
        ):
            raise InputError(
                f"{where}[{at}]: expected {expected}, got {json.dumps(item)}",
                hint=f"points are named by their row number, a whole number from {base} on",
            )
    members = [index for item in items for index in item]
    return np.array(members, dtype=np.int64), np.array([len(i) for i in items], dtype=np.int64)
