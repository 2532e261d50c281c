"""What a bundle is asked for, and what it says when it ends."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import final


@dataclass(slots=True)
class BundleStatistics:
    """What the bundle did and where its time went."""

    rounds: int = 0
    exact_pricings: int = 0
    boxes: int = 0
    climb_seconds: float = 0.0
    exact_seconds: float = 0.0
    projection_seconds: float = 0.0


@final
@dataclass(frozen=True, slots=True)
class Aim:
    """What to reach, in units of the reduced cost."""

    goal: float  # the bound asked for
    level: float  # what the cuts are asked for: a little more
    unit: float  # the gap asked for: goal is about the incumbent's cost minus this


class Outcome(StrEnum):
    """Why a bundle ended."""

    PROVEN = "the goal is proven"
    UNREACHABLE = "no multipliers in the incumbent's box reach the goal"
    EXHAUSTED = "the bound is as high as it gets"
    STOPPED = "time is up"
