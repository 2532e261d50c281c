"""Contexts for bounds under test."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from certikmeans.bounds.base import BoundContext


@dataclass(frozen=True, eq=False, kw_only=True)
class RecordingContext(BoundContext):
    """Keeps reported values and checkpoints."""

    values: list[float] = field(default_factory=list)
    checkpoints: list[Any] = field(default_factory=list)

    def report(self, value=None, *, work=0.0, **counts):
        super().report(value, work=work)
        if value is not None:
            self.values.append(value)

    def checkpoint(self, warm_start):
        self.checkpoints.append(warm_start)
