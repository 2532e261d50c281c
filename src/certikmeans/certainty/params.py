"""Parameters of the certainty computation. None of them affects what is true, only what is found.

Fractions of the time refer to `CertaintyProblem.seconds`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

import numpy as np


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


@final
@dataclass(frozen=True, slots=True)
class AggregationParams:
    """When groups are merged for the dual ascent; see `dual_ascent`."""

    min_groups: int = 4_000  # with fewer groups, merging saves nothing
    max_remaining_fraction: float = 0.3  # of the groups; above it, merging does not pay
    center_reach: float = 2.0  # radius of centers, in multiples of what own clusters allow
    multiplier_margin: float = 0.05  # fraction of the way to another cluster
    # A cluster with more than this fraction of a merged group and not the rest is not a cluster
    # of the aggregated problem.
    partial_column_tolerance: float = 1e-3

    def __post_init__(self) -> None:
        _require(0.0 <= self.max_remaining_fraction <= 1.0, "max_remaining_fraction not in [0, 1]")
        _require(0.0 <= self.partial_column_tolerance < 0.5, "partial_column_tolerance too large")


@final
@dataclass(frozen=True, slots=True)
class AscentParams:
    """How far multipliers are improved."""

    target_gap_fraction: float = 0.1  # of the slack: stop when no more than this can be gained
    min_target_gap: float = 1e-5  # of the cost
    time_fraction: float = 0.4
    # With more dimensions, exact pricing does not converge without multipliers to start from.
    max_dims: int = 8
    aggregation: AggregationParams = AggregationParams()

    def __post_init__(self) -> None:
        _require(self.target_gap_fraction > 0.0, "target_gap_fraction must be positive")
        _require(0.0 < self.time_fraction <= 1.0, "time_fraction not in (0, 1]")


@final
@dataclass(frozen=True, slots=True)
class RegionParams:
    """Boxes of centers and the proof that no good center lies outside of them."""

    # Accuracy of sigma and how much of it may be missing, as fractions of the target gain.
    sigma_tolerance: float = 0.02
    max_overstatement: float = 0.5
    max_attempts: int = 3  # each with the sigma that was found in the boxes of the previous one
    # Wider boxes make the proof outside of them easier and the regions less informative.
    box_margin: float = 0.06
    max_extent_steps: int = 12
    batch_size: int = 16  # boxes searched between two checks of the clock
    max_growths: int = 12  # boxes grown or added, per cluster
    max_parts: int = 400  # per cluster
    # With fewer groups, testing which of them can have a positive value takes as long as pricing.
    min_members_to_filter: int = 4_000

    def __post_init__(self) -> None:
        _require(self.max_attempts >= 1, "max_attempts must be at least 1")
        _require(self.batch_size >= 1, "batch_size must be at least 1")
        _require(self.box_margin >= 0.0, "box_margin must not be negative")


@final
@dataclass(frozen=True, slots=True)
class OverlapParams:
    """Bounds on the overlap of two labellings; see `overlap`."""

    # Values of theta tried by the spectral bound, in multiples of an estimate.
    theta_factors: tuple[float, ...] = tuple(np.geomspace(0.02, 2.0, 10).tolist())
    # Semidefinite bound: a check takes about so many seconds times the square of the groups; it
    # is not started with less time than `min_checks` of them take.
    seconds_per_check: float = 1.1e-6
    min_checks: int = 4
    max_checks: int = 20
    iterations_per_check: int = 25
    stall_checks: int = 3  # stop if so many checks reduce eta by less than `min_improvement`
    min_improvement: float = 0.05
    target_eta: float = 0.06  # share of the slack alone in eta
    theta_range: tuple[float, float] = (0.05, 0.3)  # fractions of the cost of merging clusters

    def __post_init__(self) -> None:
        _require(min(self.theta_factors, default=0.0) > 0.0, "theta_factors must be positive")
        _require(0.0 < self.theta_range[0] <= self.theta_range[1], "theta_range is empty")


@final
@dataclass(frozen=True, slots=True)
class CertaintyParams:
    """All parameters of `compute.compute_certainty`."""

    ascent: AscentParams = field(default_factory=AscentParams)
    regions: RegionParams = field(default_factory=RegionParams)
    overlap: OverlapParams = field(default_factory=OverlapParams)
    min_seconds: float = 8.0  # allowed however short the proof was
    region_time_fraction: float = 0.75  # regions that take longer are given up
    min_overlap_seconds: float = 2.0  # overlap bounds may take as long as the proof, or this long
    sufficient_eta: float = 0.3  # not improved by the semidefinite bound
    claim_margin: float = 0.1  # sigma of a certificate is larger by this fraction of the gain

    def __post_init__(self) -> None:
        _require(0.0 < self.region_time_fraction <= 1.0, "region_time_fraction not in (0, 1]")
        _require(self.claim_margin >= 0.0, "claim_margin must not be negative")
