"""The `Certainty` object that `Result.certainty` returns, and validation of its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._html import html_table
from certikmeans._numbers import count, fraction, percent_in_full, plain_number
from certikmeans.errors import Argument, InputError, Message, warn_renamed

if TYPE_CHECKING:
    from certikmeans.certainty.compute import CertificateClaim


def validate_slack(slack: Any) -> float:
    """Return the slack as a number, or raise `InputError`.

    >>> validate_slack(0.001)
    0.001
    """
    value = fraction(slack, "slack")
    if not 0.0 <= value <= 1.0:
        raise InputError(
            Message(Argument("slack"), f": {slack!r} is not a fraction from 0 to 1"),
            hint="0.001 stands for all labellings within 0.1 % of the cost",
        )
    return value


def validate_time_limit(time_limit: Any) -> float | None:
    """Return the time limit as a number, or None for no limit."""
    if time_limit is None:
        return None
    seconds = plain_number(time_limit)
    if not 0.0 < seconds < math.inf:
        raise InputError(
            f"time_limit: {time_limit!r} is not a positive number of seconds",
            hint="omit it to allow as much time as the proof took",
        )
    return seconds


# Values of `Certainty.method`.
FROM_REGIONS, ONE_CLUSTER = "regions of centres", "one cluster"
FROM_SPECTRAL, FROM_SDP, NO_METHOD = "spectral overlap", "semidefinite overlap", "none"


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Certainty:
    """What is proven about every labelling that costs at most ``(1 + slack)`` times the incumbent.

    The clusters of every such labelling can be numbered so that all statements hold at once.

    Attributes
    ----------
    slack : float
        Relative increase of the cost up to which labellings are considered.
    certain : ndarray of shape (n_points,)
        Whether the point is in the same cluster in all of them.
    possible : ndarray of shape (n_points, n_clusters)
        Whether the point can be in the cluster; False is proven.
    center_boxes : ndarray of shape (n_clusters, n_features, 2)
        Bounds on the coordinates of the center of each cluster, unless it is empty.
    agreement : float
        Lower bound on the fraction of points that keep their cluster.
    most_elsewhere : int
        Upper bound on the number of reassigned points.
    confusable : tuple of (int, int, int)
        Pairs of clusters and the number of points that can be in either, in descending order.
    families : tuple of tuple of int
        Clusters that are separated from all others, but not from each other.
    prices : ndarray of shape (n_points, n_clusters)
        Lower bound on the cost of assigning the point to the cluster, above what the multipliers
        used here prove for all labellings (at most `Result.cost`, and not `Result.lower_bound`).
        Infinite where the assignment is impossible, 0 where nothing is known.
    method : str
        Source of the statements: ``"regions of centres"``, ``"spectral overlap"``,
        ``"semidefinite overlap"``, ``"one cluster"`` or ``"none"``.
    reason : str
        Why nothing more is proven.
    claim_of : callable, optional
        Computes `claim`.
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
    def locates_centers(self) -> bool:
        """Whether `center_boxes` are smaller than the box of all points."""
        return self.method in (FROM_REGIONS, ONE_CLUSTER)

    @property
    def locates_points(self) -> bool:
        """Whether there are statements about single points, not only about their number."""
        return self.locates_centers or bool(self.certain.any())

    @property
    def tells_centers(self) -> bool:
        """Deprecated name of `locates_centers`."""
        warn_renamed("tells_centers", "locates_centers")
        return self.locates_centers

    @property
    def tells_points(self) -> bool:
        """Deprecated name of `locates_points`."""
        warn_renamed("tells_points", "locates_points")
        return self.locates_points

    @property
    def claim(self) -> CertificateClaim | None:
        """Claims that a certificate can hold, computed on each access; None if there are none."""
        return None if self.claim_of is None else self.claim_of()

    def __repr__(self) -> str:
        slack, certain, same, reason = (value for _, value in self._facts())
        return (
            f"Certainty(within {slack} of the cost: {certain} certain, "
            f"at least {same} grouped the same; {reason})"
        )

    def _repr_html_(self) -> str:
        return html_table(self._facts())

    def _facts(self) -> list[tuple[str, str]]:
        n_certain = int(self.certain.sum())
        return [
            ("slack", percent_in_full(self.slack)),
            ("certain", f"{n_certain} of {count(len(self.certain), 'point')}"),
            ("grouped the same, at least", _percent_rounded_down(self.agreement)),
            ("reason", self.reason),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return data for JSON; ``possible`` lists the clusters of every uncertain point."""
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
    """Format a fraction in per cent, rounded down.

    A share of points is a fraction of whole numbers, which a float may miss by its last digit.

    >>> _percent_rounded_down(0.99999), _percent_rounded_down(147 / 150 - 1e-16)
    ('99.9 %', '98 %')
    """
    return f"{int(share * 1000.0 + 1e-9) / 10.0:g} %"


def confusable_pairs(
    possible: NDArray[np.bool_],
) -> tuple[tuple[int, int, int], ...]:
    """Pairs of clusters that share possible points, with the number of these points.

    >>> confusable_pairs(np.array([[True, True, False], [True, True, True]]))
    ((0, 1, 2), (0, 2, 1), (1, 2, 1))
    """
    table = possible.astype(np.float64)
    shared = np.rint(table.T @ table).astype(np.int64)
    rows, columns = np.nonzero(np.triu(shared, 1))
    pairs = [(int(i), int(j), int(shared[i, j])) for i, j in zip(rows, columns, strict=True)]
    return tuple(sorted(pairs, key=lambda pair: (-pair[2], pair[0], pair[1])))
