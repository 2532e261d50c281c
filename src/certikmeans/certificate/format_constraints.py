"""Constraints beside hard pairs in certificate files. Part of the format, from version 3 on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

_COUNTS = ("n_set_columns", "n_soft_must_link", "n_soft_cannot_link")
_FLAGS = ("size_min", "size_max", "demand")
FIELDS = {*_COUNTS, *_FLAGS, "sha256"}


@final
@dataclass(frozen=True, slots=True, eq=False)
class StatedConstraints:
    """Sets, sizes and soft pairs between points, as they were given to the solver."""

    set_columns: NDArray[np.int64]  # (n_columns, n_points): number of the set of a point, or -1
    size_min: NDArray[np.float64] | None  # (n_clusters,)
    size_max: NDArray[np.float64] | None
    demand: NDArray[np.float64] | None  # (n_points,); None: all 1
    soft_must_link: NDArray[np.int64]  # (m, 2)
    must_penalties: NDArray[np.float64]  # (m,)
    soft_cannot_link: NDArray[np.int64]
    cannot_penalties: NDArray[np.float64]

    @classmethod
    def of(cls, arrays: dict[str, NDArray[Any]], n_points: int) -> StatedConstraints:
        """Return the constraints of arrays by name, as `Problem.other_arrays` has them."""
        pairs, numbers = np.empty((0, 2), dtype=np.int64), np.empty(0)
        return cls(
            arrays.get("cannot_link_groups", np.empty((0, n_points), dtype=np.int64)),
            arrays.get("size_min"),
            arrays.get("size_max"),
            arrays.get("demand"),
            arrays.get("soft_must_link", pairs),
            arrays.get("soft_must_link_penalties", numbers),
            arrays.get("soft_cannot_link", pairs),
            arrays.get("soft_cannot_link_penalties", numbers),
        )

    @property
    def has_sizes(self) -> bool:
        """Whether the sizes of clusters are limited."""
        return self.size_min is not None or self.size_max is not None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, without empty ones: the input of the hash."""
        found: dict[str, NDArray[Any] | None] = {
            "cannot_link_groups": self.set_columns,
            "size_min": self.size_min,
            "size_max": self.size_max,
            "demand": self.demand,
            "soft_must_link": self.soft_must_link,
            "soft_must_link_penalties": self.must_penalties,
            "soft_cannot_link": self.soft_cannot_link,
            "soft_cannot_link_penalties": self.cannot_penalties,
        }
        return {name: array for name, array in found.items() if array is not None and len(array)}

    def sha256(self) -> str:
        """Return the hash of all arrays."""
        return hash_constraints(self.arrays())

    def header(self) -> dict[str, Any]:
        """Return the fields of the header."""
        return {
            "n_set_columns": len(self.set_columns),
            "n_soft_must_link": len(self.must_penalties),
            "n_soft_cannot_link": len(self.cannot_penalties),
            "size_min": self.size_min is not None,
            "size_max": self.size_max is not None,
            "demand": self.demand is not None,
            "sha256": self.sha256(),
        }

    def payload(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by the names of `constraints_layout`."""
        none = np.empty(0)
        return {
            "set_columns": self.set_columns.ravel(),
            "size_min": none if self.size_min is None else self.size_min,
            "size_max": none if self.size_max is None else self.size_max,
            "demand": none if self.demand is None else self.demand,
            "soft_must_first": self.soft_must_link[:, 0],
            "soft_must_second": self.soft_must_link[:, 1],
            "soft_must_penalties": self.must_penalties,
            "soft_cannot_first": self.soft_cannot_link[:, 0],
            "soft_cannot_second": self.soft_cannot_link[:, 1],
            "soft_cannot_penalties": self.cannot_penalties,
        }

    @classmethod
    def read(cls, header: dict[str, Any], arrays: dict[str, Any]) -> StatedConstraints | None:
        """Assemble the constraints from decoded data; None if there are none."""
        stated = header.get("constraints")
        if stated is None:
            return None

        def pairs(name: str) -> NDArray[np.int64]:
            return np.column_stack([arrays[f"soft_{name}_first"], arrays[f"soft_{name}_second"]])

        return cls(
            arrays["set_columns"].reshape(stated["n_set_columns"], header["n_points"]),
            arrays["size_min"] if stated["size_min"] else None,
            arrays["size_max"] if stated["size_max"] else None,
            arrays["demand"] if stated["demand"] else None,
            pairs("must"),
            arrays["soft_must_penalties"],
            pairs("cannot"),
            arrays["soft_cannot_penalties"],
        )


def hash_constraints(arrays: dict[str, NDArray[Any]]) -> str:
    """SHA-256 over arrays of constraints by name; empty if there are none."""
    if not arrays:
        return ""
    digest = hashlib.sha256(b"certikmeans-constraints-1")
    for name in sorted(arrays):
        array = arrays[name].astype("<f8" if arrays[name].dtype.kind == "f" else "<i8")
        digest.update(name.encode() + b"\0")
        digest.update(np.asarray(array.shape, dtype="<i8").tobytes())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def constraints_layout(header: dict[str, Any]) -> list[tuple[str, str, int]]:
    """Name, type and length of the arrays of constraints."""
    stated = header.get("constraints")
    if stated is None:
        return []
    n, k = header["n_points"], header["n_clusters"]
    must, cannot = stated["n_soft_must_link"], stated["n_soft_cannot_link"]
    return [
        ("set_columns", "<i4", stated["n_set_columns"] * n),
        ("size_min", "<f8", k if stated["size_min"] else 0),
        ("size_max", "<f8", k if stated["size_max"] else 0),
        ("demand", "<f8", n if stated["demand"] else 0),
        ("soft_must_first", "<i4", must),
        ("soft_must_second", "<i4", must),
        ("soft_must_penalties", "<f8", must),
        ("soft_cannot_first", "<i4", cannot),
        ("soft_cannot_second", "<i4", cannot),
        ("soft_cannot_penalties", "<f8", cannot),
    ]


def constraints_header_error(stated: Any, largest: int) -> str | None:
    """Return what is invalid in the header of the constraints, or None."""
    if not (isinstance(stated, dict) and set(stated) == FIELDS):
        return "the constraints do not have the fields of this version"
    for name in _COUNTS:
        if type(stated[name]) is not int or not 0 <= stated[name] <= largest:
            return f"{name} is not a count"
    if any(type(stated[name]) is not bool for name in _FLAGS):
        return "a flag of the constraints is neither true nor false"
    if not isinstance(stated["sha256"], str):
        return "the hash of the constraints is not a text"
    return None
