"""The part of a certificate file that claims more than a bound. Part of the format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

_COUNTS, _NUMBERS = ("n_boxes", "n_groups"), ("slack", "sigma")


@final
@dataclass(frozen=True, slots=True, eq=False)
class CertaintyClaim:
    """What is claimed of every labelling that costs at most ``(1 + slack)`` times the cost."""

    slack: float
    sigma: float  # no cluster is worth more
    multipliers: NDArray[np.float64]  # (n_groups,)
    low: NDArray[np.float64]  # (n_boxes, n_axes)
    high: NDArray[np.float64]
    cluster: NDArray[np.int64]  # (n_boxes,)
    certain: NDArray[np.int64]  # (n_points,): 1 where the point is in its cluster

    def header(self) -> dict[str, Any]:
        """Return what the header says of it."""
        counts = {"n_boxes": len(self.cluster), "n_groups": len(self.multipliers)}
        return {"slack": self.slack, "sigma": self.sigma, **counts}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays, by the names of `certainty_layout`."""
        return {
            "level": self.multipliers,
            "low": self.low.ravel(),
            "high": self.high.ravel(),
            "cluster": self.cluster,
            "certain": self.certain,
        }

    @classmethod
    def read(cls, header: dict[str, Any], arrays: dict[str, Any]) -> CertaintyClaim | None:
        """Assemble what was read; None where nothing is claimed."""
        claim = header.get("certainty")
        if claim is None:
            return None
        shape = (claim["n_boxes"], header["n_axes"])
        return cls(
            slack=float(claim["slack"]),
            sigma=float(claim["sigma"]),
            multipliers=arrays["level"],
            low=arrays["low"].reshape(shape),
            high=arrays["high"].reshape(shape),
            cluster=arrays["cluster"],
            certain=arrays["certain"],
        )


def certainty_layout(header: dict[str, Any]) -> list[tuple[str, str, int]]:
    """Name, type and length of its arrays, behind all others."""
    claim = header.get("certainty")
    if claim is None:
        return []
    return [
        ("level", "<f8", claim["n_groups"]),
        ("low", "<f8", claim["n_boxes"] * header["n_axes"]),
        ("high", "<f8", claim["n_boxes"] * header["n_axes"]),
        ("cluster", "<i4", claim["n_boxes"]),
        ("certain", "<u1", header["n_points"]),
    ]


def claim_problem(claim: Any, labelled: bool, largest: int) -> str | None:
    """What is impossible about what the header says; None: nothing."""
    if not (isinstance(claim, dict) and set(claim) == {*_COUNTS, *_NUMBERS}):
        return "certainty does not have the fields of this version"
    if not labelled:
        return "certainty is claimed although there are no labels"
    for name in _COUNTS:
        if type(claim[name]) is not int or not 1 <= claim[name] <= largest:
            return f"{name} of certainty is not a count"
    for name in _NUMBERS:
        if type(claim[name]) not in (int, float) or not 0 <= claim[name] <= 1e300:
            return f"{name} of certainty is not a finite number of at least 0"
    return None
