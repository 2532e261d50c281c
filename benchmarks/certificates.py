"""Solve, write, check: how large certificates are, and how long checking takes."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.datasets.paper import KINDS, real, synthetic, with_pairs
from benchmarks.datasets.published import data_dir, published_instances
from benchmarks.environment import about
from benchmarks.tables import show
from certikmeans import Problem, solve
from certikmeans.certificate import check_certificate
from certikmeans.certificate.write import write_certificate

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "certificates.jsonl"
TIME_LIMIT = 300.0


@dataclass(frozen=True)
class Row:
    """One instance: its certificate and what it took."""

    name: str
    kind: str
    n: int
    d: int
    K: int
    groups: int
    leaves: int
    gap: float | None
    accepted: bool
    reason: str
    size: int
    solve_seconds: float
    bounds_seconds: float
    check_seconds: float
    boxes: int
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Checking time over the solver's time for bounds."""
        return self.check_seconds / max(self.bounds_seconds, 1e-9)

    @property
    def spare_bytes(self) -> float:
        """Bytes per point beyond 8 per multiplier."""
        return (self.size - 8 * self.groups) / self.n


Make = Callable[[], Problem | None]


def _published(directory: Path, name: str) -> Problem | None:
    return next(one.problem for one in published_instances(directory) if one.name == name)


def _real(directory: Path, name: str, kind: str) -> Problem | None:
    data = real(name, directory)
    return None if data is None else with_pairs(data, kind)


def _synthetic(n: int, kind: str) -> Problem | None:
    return with_pairs(synthetic(n), kind)


def requests(directory: Path | None, small: bool) -> Iterator[tuple[str, str, Make]]:
    """Every row: name, kind of pairs, and how to make the instance in another process."""
    if directory is not None and not small:
        for one in published_instances(directory):
            yield one.name, "published", partial(_published, directory, one.name)
        for name in ("hemi", "pr2392", "rds_cnt", "htru2", "skin_8"):
            for kind in KINDS:
                yield name, kind, partial(_real, directory, name, kind)
    for n in (1_200,) if small else (12_000, 21_000, 210_000):
        for kind in ("CL", "ML+CL"):
            yield f"synthetic-{n}", kind, partial(_synthetic, n, kind)
    for n in (2_100,) if small else (210_000, 1_500_000):
        yield f"synthetic-{n}", "ML", partial(_synthetic, n, "ML")


def _measure(name: str, kind: str, make: Make, seed: int) -> Row | None:
    problem = make()
    if problem is None:
        return None
    warm = Problem.from_data(problem.points[:60], 3, cannot_link=[(0, 1), (1, 2), (2, 0)])
    solve(warm, seed=seed, time_limit=60, keep_proof=True)
    result = solve(problem, seed=seed, time_limit=TIME_LIMIT, keep_proof=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "certificate"
        write_certificate(path, problem, result)
        content = path.read_bytes()
    began = time.perf_counter()
    verdict = check_certificate(
        problem.points, content, must_link=problem.must_link, cannot_link=problem.cannot_link
    )
    seconds = time.perf_counter() - began
    return Row(
        name=name,
        kind=kind,
        n=problem.n_points,
        d=problem.n_features,
        K=problem.n_clusters,
        groups=verdict.details.get("groups", 0),
        leaves=verdict.details.get("leaves", 0),
        gap=verdict.gap,
        accepted=verdict.accepted,
        reason=verdict.message,
        size=len(content),
        solve_seconds=result.seconds["total"],
        bounds_seconds=sum(v for k, v in result.seconds.items() if k in ("bounds", "search")),
        check_seconds=seconds,
        boxes=verdict.details.get("boxes", 0),
        about=about(seed),
    )


def _table(rows: list[Row]) -> str:
    header = ["instance", "pairs", "n", "d", "K", "leaves", "gap %", "verdict", "bytes",
              "bytes per point beyond multipliers", "solve s", "bounds s", "check s",
              "check / bounds", "boxes"]  # fmt: skip
    body = [
        [
            row.name, row.kind, f"{row.n:,}", row.d, row.K, row.leaves,
            "" if row.gap is None else f"{100 * row.gap:.4f}",
            "accepted" if row.accepted else f"REFUSED: {row.reason}", f"{row.size:,}",
            f"{row.spare_bytes:.2f}", f"{row.solve_seconds:.2f}", f"{row.bounds_seconds:.3f}",
            f"{row.check_seconds:.3f}", f"{row.ratio:.2f}", f"{row.boxes:,}",
        ]
        for row in rows
    ]  # fmt: skip
    return show(header, body)


def main(arguments: argparse.Namespace) -> None:
    """Run, append to the results, and write the page."""
    directory = data_dir(arguments.data_dir)
    if directory is None:
        print("the real data sets are not here (--data-dir): synthetic rows only")
    wanted = getattr(arguments, "only", None)
    context = multiprocessing.get_context("spawn")
    rows = []
    for name, kind, make in requests(directory, arguments.small):
        if wanted and wanted not in f"{name} {kind}":
            continue
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            row = pool.submit(_measure, name, kind, make, arguments.seed).result()
        if row is None:
            print(f"{name} {kind}: skipped, its file is not here")
            continue
        rows.append(row)
        print(
            f"{name} {kind}: {'accepted' if row.accepted else 'REFUSED: ' + row.reason}, "
            f"{row.size:,} bytes, bounds {row.bounds_seconds:.3f} s, "
            f"check {row.check_seconds:.3f} s ({row.ratio:.2f} x)",
            flush=True,
        )
        if not arguments.small:
            with RESULTS.open("a") as file:
                file.write(json.dumps(asdict(row)) + "\n")
    if not arguments.small and not wanted:
        page = RESULTS.with_suffix(".md")
        page.write_text(
            "# Certificates\n\nWritten by `python -m benchmarks certificates`. `bounds s` is the "
            "solver's own time for bounds and search, `check s` that of the checker, on the same "
            f"machine, compilation excluded.\n\n{_table(rows)}\n"
        )
        print(f"wrote {page}")
