"""The `Certainty` object that `Result.certainty` returns, and validation of its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._numbers import count, percent_in_full, plain_number
from certikmeans.errors import Argument, InputError, Message

if TYPE_CHECKING:
    from certikmeans.certainty.compute import CertificateClaim


def validate_slack(slack: Any) -> float:
    """Return the slack as a number, or say what is wrong with it.

    >>> validate_slack(0.001)
    0.001
    """
    value = plain_number(slack)
    if not 0.0 <= value <= 1.0:
        raise InputError(
            Message(Argument("slack"), f": {slack!r} is not a share from 0 to 1"),
            hint="0.001 speaks of all labellings within 0.1 % of the cost",
        )
    return value


def validate_time_limit(time_limit: Any) -> float | None:
    """Return the time limit as a number; None: there is none."""
    if time_limit is None:
        return None
    seconds = plain_number(time_limit)
    if not 0.0 < seconds < math.inf:
        raise InputError(
            f"time_limit: {time_limit!r} is not a positive number of seconds",
            hint="leave it out: then it may take as long as the proof",
        )
    return seconds


# What `Result.certainty` returns.

# Methods: from the places of centres, and from how many points two labellings have in common.
FROM_REGIONS, ONE_CLUSTER = "regions of centres", "one cluster"
FROM_SPECTRAL, FROM_SDP, NO_METHOD = "spectral overlap", "semidefinite overlap", "none"


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Certainty:
    """What is proven of every labelling that costs at most ``(1 + slack)`` times ours.

    The clusters of every such labelling can be numbered so that all of this holds for it at once.

    Attributes
    ----------
    slack : float
        How much more the labellings spoken of may cost, as a share.
    certain : ndarray of shape (n_points,)
        Whether the point is in the same cluster as with us.
    possible : ndarray of shape (n_points, n_clusters)
        Whether the point can be in the cluster at all: where False, it is not.
    center_boxes : ndarray of shape (n_clusters, n_features, 2)
        Least and largest coordinates of the centre of each cluster, as far as it is not empty.
    agreement : float
        At least this share of the points is grouped as with us.
    most_elsewhere : int
        At most so many points are not.
    confusable : tuple of (int, int, int)
        Pairs of clusters, and how many points can be in either: most points first.
    families : tuple of tuple of int
        Clusters that are told apart from all others, but not from each other.
    prices : ndarray of shape (n_points, n_clusters)
        What it costs at least to have the point there, beyond what the multipliers used here prove
        of all labellings (at most `Result.cost`, and not `Result.lower_bound`). Infinite where it
        cannot be; 0 where nothing is known.
    method : str
        What the statements were derived from: ``"regions of centres"``, ``"spectral overlap"``,
        ``"semidefinite overlap"``, ``"one cluster"`` or ``"none"``.
    reason : str
        Why it is no more.
    claim_of : callable, optional
        Returns what a certificate can hold of it; see `claim`.
    """

    slack: float
    certain: NDArray[np.bool_]
    possible: NDArray[np.bool_]
    center_boxes: NDArray[np.float64]
    agreement: float
    most_elsewhere: int
    confusable: tuple[tuple[int, int, int], ...]
    families: tuple[tuple[int, ...], ...]
    prices: NDArray[np.float64]
    method: str
    reason: str
    claim_of: Callable[[], CertificateClaim | None] | None = None

    @property
    def tells_centers(self) -> bool:
        """Whether centres are known to be in less than the box of all points."""
        return self.method in (FROM_REGIONS, ONE_CLUSTER)

    @property
    def tells_points(self) -> bool:
        """Whether something is known of single points, and not of how many only."""
        return self.tells_centers or bool(self.certain.any())

    @property
    def claim(self) -> CertificateClaim | None:
        """What a certificate can hold of it, derived when somebody asks."""
        return None if self.claim_of is None else self.claim_of()

    def __repr__(self) -> str:
        n_points = len(self.certain)
        return (
            f"Certainty(within {percent_in_full(self.slack)} of the cost: "
            f"{int(self.certain.sum())} of {count(n_points, 'point')} certain, "
            f"at least {_percent_rounded_down(self.agreement)} grouped the same; {self.reason})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; ``possible`` as the list of clusters of every uncertain point."""
        uncertain = np.flatnonzero(~self.certain)
        return {
            "slack": self.slack,
            "agreement": self.agreement,
            "most_elsewhere": self.most_elsewhere,
            "n_certain": int(self.certain.sum()),
            "certain": self.certain.tolist(),
            "possible": {str(i): np.flatnonzero(self.possible[i]).tolist() for i in uncertain},
            "center_boxes": self.center_boxes.tolist(),
            "confusable": [list(pair) for pair in self.confusable],
            "families": [list(family) for family in self.families],
            "method": self.method,
            "reason": self.reason,
        }


def _percent_rounded_down(share: float) -> str:
    """A share in per cent, rounded down.

    >>> _percent_rounded_down(0.99999)
    '99.9 %'
    """
    return f"{int(share * 1000.0) / 10.0:g} %"


def confusable_pairs(
    possible: NDArray[np.bool_],
) -> tuple[tuple[int, int, int], ...]:
    """Pairs of clusters that share points, and how many.

    >>> confusable_pairs(np.array([[True, True, False], [True, True, True]]))
    ((0, 1, 2), (0, 2, 1), (1, 2, 1))
    """
    table = possible.astype(np.float64)
    shared = np.rint(table.T @ table).astype(np.int64)
    rows, columns = np.nonzero(np.triu(shared, 1))
    pairs = [(int(i), int(j), int(shared[i, j])) for i, j in zip(rows, columns, strict=True)]
    return tuple(sorted(pairs, key=lambda pair: (-pair[2], pair[0], pair[1])))
