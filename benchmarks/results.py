"""One line of a results file: the request, the result and the checks of the harness."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.datasets.base import AbstractInstance, Sizes
from benchmarks.solvers.base import AbstractSolver, TracePoint

SKIPPED, KILLED, CRASHED = "skipped", "killed", "crashed"

Key = tuple[str, str, str, float, int]


@dataclass(frozen=True)
class RunRequest:
    """One row to be: an instance, a solver, its limit."""

    instance: AbstractInstance
    solver: AbstractSolver
    limit: float
    seed: int = 0

    @property
    def key(self) -> Key:
        """Rows with equal keys answer the same question."""
        options = _sorted(self.solver.options)
        return self.instance.name, self.solver.name, options, self.limit, self.seed

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.instance.name} | {self.solver.name}"


@dataclass(frozen=True)
class ResultRow:
    """The request, the result, and the checks of the harness."""

    instance: str
    solver: str
    limit: float
    seed: int
    stop_reason: str
    note: str = ""  # why skipped, killed or crashed
    options: dict[str, Any] = field(default_factory=dict)  # of the solver
    facts: dict[str, Any] = field(default_factory=dict)  # of the instance
    pairs: str = ""  # where the pairs come from
    sizes: Sizes | None = None
    cost: float | None = None  # recomputed; None without labels
    pairs_broken: int | None = None
    lower_bound: float | None = None
    nodes: int | None = None
    seconds: float | None = None
    peak_gigabytes: float | None = None
    scores: dict[str, float] = field(default_factory=dict)
    trace: tuple[TracePoint, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        """That of its request."""
        return self.instance, self.solver, _sorted(self.options), self.limit, self.seed

    @property
    def feasible(self) -> bool:
        """There are labels and they respect every pair."""
        return self.cost is not None and self.pairs_broken == 0

    @property
    def gap(self) -> float | None:
        """``(cost - lower bound) / cost`` with the recomputed cost."""
        if not self.feasible or self.lower_bound is None:
            return None
        return relative_gap(self.cost, self.lower_bound)

    @property
    def root_gap(self) -> float | None:
        """The same before the first branching, as reported by the solver."""
        root = self.details.get("root", {})
        return relative_gap(root.get("cost"), root.get("lower_bound"))


def empty_row(request: RunRequest, reason: str, note: str, **known: Any) -> ResultRow:
    """A row without an answer."""
    return ResultRow(
        instance=request.instance.name,
        solver=request.solver.name,
        limit=request.limit,
        seed=request.seed,
        stop_reason=reason,
        note=note,
        options=request.solver.options,
        facts=request.instance.facts,
        **known,
    )


def _sorted(options: Mapping[str, Any]) -> str:
    return json.dumps(options, sort_keys=True)


def relative_gap(cost: float | None, lower_bound: float | None) -> float | None:
    """``(cost - lower_bound) / cost``, at least 0; None if either is unknown.

    >>> relative_gap(10.0, 9.0), relative_gap(None, 1.0)
    (0.1, None)
    """
    if cost is None or lower_bound is None or not math.isfinite(cost):
        return None
    return max(0.0, cost - lower_bound) / cost if cost > 0.0 else 0.0


def append(path: Path, row: ResultRow) -> None:
    """Add a row to a results file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(dataclasses.asdict(row), allow_nan=False) + "\n")


def load(path: Path) -> list[ResultRow]:
    """Every row of a results file, oldest first."""
    if not path.is_file():
        return []
    return [_row(json.loads(line)) for line in path.read_text().splitlines()]


def _row(data: dict[str, Any]) -> ResultRow:
    data["sizes"] = None if data["sizes"] is None else Sizes(**data["sizes"])
    data["trace"] = tuple((p[0], p[1], p[2]) for p in data["trace"])
    return ResultRow(**data)


ResultTable = Mapping[tuple[str, str], ResultRow]


def latest(rows: Iterable[ResultRow]) -> dict[tuple[str, str], ResultRow]:
    """Of rows for the same instance and solver, the last; whatever their limits and seeds."""
    return {(row.instance, row.solver): row for row in rows}


def commits(rows: Iterable[ResultRow]) -> str:
    """The commits that rows were measured at, in order of their names."""
    return ", ".join(sorted({str(row.about.get("commit", "")) for row in rows}))
