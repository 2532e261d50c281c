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

from benchmarks.datasets.paper import KINDS
from benchmarks.datasets.published import data_dir, published_instances
from benchmarks.datasets.recipes import (
    noise,
    published,
    real_with_pairs,
    standardised_wine,
    synthetic_with_pairs,
)
from benchmarks.environment import about
from benchmarks.pages import wrapped
from benchmarks.tables import show
from certikmeans import Problem, solve
from certikmeans.certificate import check_certificate
from certikmeans.certificate.write import write_certificate

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "certificates.jsonl"
TIME_LIMIT = 300.0
MATRIX_LIMIT = 20.0  # where the semidefinite bound proves: it may have to branch


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
    bound: str = ""  # which one the proven value came from; rows of old do not say
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """Checking time over the solver's time for bounds."""
        return self.check_seconds / max(self.bounds_seconds, 1e-9)

    @property
    def spare_bytes(self) -> float:
        """Bytes per point beyond 8 per multiplier."""
        return (self.size - 8 * self.groups) / self.n


@dataclass(frozen=True)
class Request:
    """An instance by recipe, so that it can be made in another process."""

    name: str
    kind: str
    make: Callable[[], Problem | None]
    limit: float = TIME_LIMIT

    @property
    def title(self) -> str:
        """For people."""
        return f"{self.name} {self.kind}"


def requests(directory: Path | None, small: bool) -> Iterator[Request]:
    """Every row."""
    if directory is not None and not small:
        for one in published_instances(directory):
            yield Request(one.name, "published", partial(published, directory, one.name))
        for name in ("hemi", "pr2392", "rds_cnt", "htru2", "skin_8"):
            for kind in KINDS:
                yield Request(name, kind, partial(real_with_pairs, directory, name, kind))
    for n in (1_200,) if small else (12_000, 21_000, 210_000):
        for kind in ("CL", "ML+CL"):
            yield Request(f"synthetic-{n}", kind, partial(synthetic_with_pairs, n, kind))
    for n in (2_100,) if small else (210_000, 1_500_000):
        yield Request(f"synthetic-{n}", "ML", partial(synthetic_with_pairs, n, "ML"))
    for n, d in ((20, 10),) if small else ((60, 10),):
        yield Request(f"normal-{n}", "none", partial(noise, n, d, 3), MATRIX_LIMIT)
    if not small:
        yield Request("standardised wine", "none", standardised_wine, MATRIX_LIMIT)


def measured(request: Request, seed: int) -> Row | None:
    """Solve, write, check; None where the data are absent."""
    problem = request.make()
    if problem is None:
        return None
    warm = Problem.from_data(problem.points[:60], 3, cannot_link=[(0, 1), (1, 2), (2, 0)])
    solve(warm, seed=seed, time_limit=60, keep_proof=True)
    if request.limit == MATRIX_LIMIT:
        solve(warm, seed=seed, time_limit=60, node_limit=3, bound="sdp")
    result = solve(problem, seed=seed, time_limit=request.limit, keep_proof=True)
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
        name=request.name,
        kind=request.kind,
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
        bound=result.bound,
        about=about(seed),
    )


def _table(rows: list[Row]) -> str:
    header = ["instance", "pairs", "n", "d", "K", "bound", "leaves", "gap %", "verdict", "bytes",
              "bytes per point beyond multipliers", "solve s", "bounds s", "check s",
              "check / bounds", "boxes"]  # fmt: skip
    body = [
        [
            row.name, row.kind, f"{row.n:,}", row.d, row.K, row.bound, row.leaves,
            "" if row.gap is None else f"{100 * row.gap:.4f}",
            "accepted" if row.accepted else f"REFUSED: {row.reason}", f"{row.size:,}",
            "" if row.bound == "sdp" else f"{row.spare_bytes:.2f}", f"{row.solve_seconds:.2f}",
            f"{row.bounds_seconds:.3f}", f"{row.check_seconds:.3f}", f"{row.ratio:.2f}",
            f"{row.boxes:,}",
        ]
        for row in rows
    ]  # fmt: skip
    return show(header, body)


def main(arguments: argparse.Namespace) -> None:
    """Run, append to the results, and write the page from all of them."""
    directory = data_dir(arguments.data_dir)
    if directory is None:
        print("the real data sets are not here (--data-dir): the other rows only")
    small = arguments.small
    if small or not arguments.report_only:
        only = None if small else arguments.only
        for request in requests(directory, small):
            if only is None or only.lower() in request.title.lower():
                _run(request, arguments.seed, None if small else RESULTS)
    if not small:
        print(f"wrote {write_report(RESULTS)}")


def _run(request: Request, seed: int, results: Path | None) -> None:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        row = pool.submit(measured, request, seed).result()
    if row is None:
        print(f"{request.title}: skipped, its file is not here")
        return
    print(
        f"{request.title}: {'accepted' if row.accepted else 'REFUSED: ' + row.reason}, "
        f"{row.bound}, {row.leaves} leaves, {row.size:,} bytes, "
        f"bounds {row.bounds_seconds:.3f} s, check {row.check_seconds:.3f} s ({row.ratio:.2f} x)",
        flush=True,
    )
    if results is not None:
        with results.open("a") as file:
            file.write(json.dumps(asdict(row)) + "\n")


def write_report(results: Path) -> Path:
    """Write the page beside the results; of rows measured twice, the last."""
    rows = [Row(**json.loads(line)) for line in results.read_text().splitlines()]
    latest = {(row.name, row.kind): row for row in rows}
    commits = ", ".join(dict.fromkeys(str(row.about.get("commit", "")) for row in latest.values()))
    page = results.with_suffix(".md")
    text = (
        "# Certificates\n\nWritten by `python -m benchmarks certificates` from "
        f"`certificates.jsonl`, commit {commits}. `bound` is the one that the proven value came "
        f"from. Limits: {MATRIX_LIMIT:g} s where there are no pairs, {TIME_LIMIT:g} s elsewhere. "
        "`bounds s` is the solver's own time for bounds and search, `check s` that of the checker, "
        "on the same machine, compilation excluded.\n\n"
        f"{_table(list(latest.values()))}\n"
    )
    page.write_text(wrapped(text))
    return page


def add_arguments(command: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    command.add_argument("--only", default=None, help="rows whose title contains this")
    command.add_argument("--report-only", action="store_true", help="write the page, run nothing")
