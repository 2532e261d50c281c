"""Pairs in JSON: ``{"ml": [[0, 1]], "cl": [[1, 2]], "groups": [[3, 4, 5]]}``.

``must_link`` and ``cannot_link`` are accepted for ``ml`` and ``cl``; every key is optional.
The files of PCCC and S-MDEClust have keys for soft pairs too, ``sml``, ``scl``, ``sml_proba`` and
``scl_proba``: they are read as long as these are empty.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certikmeans._numbers import count
from certikmeans.errors import InputError
from certikmeans.problem.constraints import chain_pairs
from certikmeans.problem.files.text import EXCERPT, did_you_mean, excerpt, listed
from certikmeans.problem.links import Links

_MUST, _CANNOT, _GROUPS = ("ml", "must_link"), ("cl", "cannot_link"), ("groups",)
_SOFT = ("sml", "scl", "sml_proba", "scl_proba")
_KEYS = (*_MUST, *_CANNOT, *_GROUPS)
_EXPECTED = 'expected {"ml": [[0, 1]], "cl": [[1, 2]]}'


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
        content = dict(items)
        if len(content) < len(items):
            times = Counter(key for key, _ in items)
            raise InputError(
                f"{path}: the key {excerpt(times.most_common(1)[0][0])} occurs twice",
                hint="join the two lists into one",
            )
        return content

    try:
        content = json.loads(text, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{path}, line {error.lineno}, column {error.colno}: not valid JSON: {error.msg}",
            hint=_EXPECTED,
        ) from error
    except RecursionError as error:
        raise InputError(f"{path}: lists are nested too deeply", hint=_EXPECTED) from error
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(  # Python refuses numbers of thousands of digits
            f"{path}: a number has too many digits",
            hint="points are named by their row number",
        ) from error
    if not isinstance(content, dict):
        raise InputError(
            f"{path}: expected an object with lists of pairs, got {type(content).__name__}",
            hint=_EXPECTED,
        )
    unknown = [key for key in content if key not in _KEYS and key not in _SOFT]
    if unknown:
        raise InputError(
            f"{path}: unknown key {listed(map(excerpt, unknown), limit=5)}",
            hint=did_you_mean(unknown[0], _KEYS) + f"known keys: {', '.join(_KEYS)}",
        )
    _refuse_soft_pairs(content, path)
    return content


def _refuse_soft_pairs(content: dict[str, Any], path: str) -> None:
    for key in _SOFT:
        value = content.get(key)
        if value is None or (isinstance(value, list | dict) and not value):
            continue
        size = count(len(value), "soft pair") if isinstance(value, list | dict) else excerpt(value)
        raise InputError(
            f"{path}: {key}: holds {size}, but every pair has to hold here",
            hint="empty the lists sml, scl, sml_proba and scl_proba; move the pairs that have to "
            "hold to ml and cl. certikmeans.baselines.PCKMeans takes preferences",
        )


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
            f"{path}: {key}: expected a list, got {excerpt(value)}",
            hint='expected "ml": [[0, 1], ...]',
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
                f"{where}[{at}]: expected {expected}, got {_as_json(item)}",
                hint=f"points are named by their row number, a whole number from {base} on",
            )
    members = [index for item in items for index in item]
    return np.array(members, dtype=np.int64), np.array([len(i) for i in items], dtype=np.int64)


def _as_json(item: Any) -> str:
    """Show an item as the file wrote it, cut if it is long."""
    try:
        text = json.dumps(item)
    except RecursionError:
        text = excerpt(item)
    return text if len(text) <= EXCERPT else text[:EXCERPT] + "..."
