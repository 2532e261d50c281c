"""How far the root bound gets, and how fast, on everything the paper tried and more."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks import rows as measured
from benchmarks.datasets.paper import KINDS
from benchmarks.datasets.published import data_dir, published_instances
from benchmarks.datasets.recipes import published, real_with_pairs, synthetic_with_pairs
from benchmarks.root_report import write_report
from benchmarks.rows import Request, Row, measure

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "benchmarks" / "root.jsonl"
PAPER_ROWS = {
    "iris/ml_50_cl_0_0",
    "iris/ml_0_cl_50_2",
    "iris/ml_25_cl_25_1",
    "seeds/ml_50_cl_0_0",
    "seeds/ml_0_cl_50_0",
    "seeds/ml_25_cl_25_1",
}


def _small_requests(directory: Path) -> Iterator[Request]:
    for one in published_instances(directory):
        make = partial(published, directory, one.name)
        kind = "published"
        if one.name in PAPER_ROWS:
            yield Request("paper rows", one.name, kind, make, one.best_known)
            yield Request("paper rows", one.name, kind, make, one.best_known, gap=1e-6)
        yield Request("published", one.name, kind, make, one.best_known, with_kmeans=False)


def _real_requests(directory: Path) -> Iterator[Request]:
    for name in ("hemi", "pr2392", "rds_cnt", "htru2", "skin_8"):
        for kind in KINDS:
            yield Request("real", name, kind, partial(real_with_pairs, directory, name, kind))
    yield Request("real", "urbanGB", "ML", partial(real_with_pairs, directory, "urbanGB", "ML"))


def _synthetic_requests(small: bool) -> Iterator[Request]:
    for n in (1_200,) if small else (12_000, 21_000, 42_000, 210_000):
        for kind in ("CL", "ML+CL"):
            yield Request(
                "synthetic", f"synthetic-{n}", kind, partial(synthetic_with_pairs, n, kind)
            )
    for n in (2_100,) if small else (21_000, 42_000, 210_000, 420_000, 1_050_000, 1_500_000):
        yield Request("growth n", f"synthetic-{n}", "ML", partial(synthetic_with_pairs, n, "ML"))
    base = 1_200 if small else 21_000
    for k in (2, 3) if small else (2, 3, 5, 8, 12):
        make = partial(synthetic_with_pairs, base, "CL", 2, k)
        yield Request("growth K", f"synthetic-{base}-K{k}", "CL", make)
    for d in (2, 3) if small else (2, 3, 4, 6, 8, 10):
        make = partial(synthetic_with_pairs, base, "CL", d)
        yield Request("growth d", f"synthetic-{base}-d{d}", "CL", make)


def requests(directory: Path | None, small: bool) -> Iterator[Request]:
    """Every row of the benchmark; without the real data, the synthetic ones."""
    if directory is not None and not small:
        yield from _small_requests(directory)
        yield from _real_requests(directory)
    yield from _synthetic_requests(small)


def add_arguments(command: argparse.ArgumentParser) -> None:
    """The options of this benchmark."""
    command.add_argument("--only", default=None, help="rows whose title contains this")


def main(arguments: argparse.Namespace) -> None:
    """Run, append to the results, and write the page."""
    directory = data_dir(arguments.data_dir)
    if directory is None:
        print("the real data sets are not here (--data-dir): synthetic rows only")
    wanted = getattr(arguments, "only", None)
    for request in requests(directory, arguments.small):
        title = f"{request.group}: {request.name} {request.kind}"
        if wanted and wanted not in title:
            continue
        row = measure(request, arguments.seed)
        if row is None:
            print(f"{title}: skipped, its file is not here")
            continue
        print(_line(title, row), flush=True)
        if not arguments.small:
            measured.append(RESULTS, row)
    if not arguments.small:
        print(f"wrote {write_report(measured.load(RESULTS), RESULTS.parent)}")


def _line(title: str, row: Row) -> str:
    ratio = "" if row.ratio is None else f", {row.ratio:.2f} x KMeans(n_init=100)"
    warning = "" if row.pairs_broken == 0 else f" BROKEN PAIRS: {row.pairs_broken}"
    if row.best_known is not None and row.lower_bound > row.best_known * (1 + 1e-9):
        warning += " BOUND ABOVE BEST KNOWN"
    return (
        f"{title}: gap {row.gap:.2e} in {row.seconds['total']:.2f} s"
        f" ({row.stop_reason}){ratio}{warning}"
    )
