"""What is certain, and what it costs to know: time beside that of the proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.datasets.base import Recipe
from benchmarks.datasets.recipes import blobs, real_with_pairs, synthetic_with_pairs
from benchmarks.pages import percent, show, write_page
from benchmarks.rows import Request, Row, commits, latest
from benchmarks.solvers.certain import Certain
from benchmarks.study import Scope, Study

LIMIT = 120.0
SLACKS = (1e-4, 1e-3)


def rows(scope: Scope) -> Iterator[Request]:
    """Every instance with every slack."""
    for one in _instances(scope):
        for slack in SLACKS[-1:] if scope.small else SLACKS:
            yield Request(one, Certain(slack), LIMIT)


def _instances(scope: Scope) -> Iterator[Recipe]:
    if scope.directory is not None and not scope.small:
        for name, kind in (("seeds", "ML+CL"), ("hemi", "ML"), ("pr2392", "CL"), ("htru2", "ML")):
            yield Recipe(f"{name} {kind}", partial(real_with_pairs, name, kind))
    for n in (1_200,) if scope.small else (2_100, 21_000, 210_000):
        for kind in ("CL",) if scope.small else ("CL", "ML+CL"):
            yield Recipe(f"synthetic-{n} {kind}", partial(synthetic_with_pairs, n, kind, 2, 3))
    for n, d in ((300, 20),) if scope.small else ((2_000, 50), (20_000, 30)):
        yield Recipe(f"blobs-{n}-{d} none", partial(blobs, n, d, 5))


def write_report(rows: Sequence[Row], directory: Path) -> Path:
    """Write ``certainty.md``."""
    found = [row for row in latest(rows).values() if "agreement" in row.details]
    lost = [row for row in latest(rows).values() if "agreement" not in row.details]
    lines = [_line(row) for row in found]
    header = [
        *("instance", "d", "slack", "gap", "proof s", "certainty s", "ratio"),
        *("certain", "grouped the same"),
    ]
    within = sum(_seconds(row) <= max(1.0, row.details["proof_seconds"]) for row in found)
    reasons = sorted({f"{row.instance}: {row.details['reason']}" for row in found})
    parts = [
        "# Certainty\n",
        f"Written by `python -m benchmarks certainty` from `certainty.jsonl`, commit "
        f"{commits(found)}. `proof s` is the time of bounds and search to 0.1 %, `certainty s` "
        "that of `result.certainty(slack)` after it, on the same machine, compilation excluded. "
        "`certain` is the share of points that are each in the same cluster in every labelling "
        "within the slack; `grouped the same` the share that is proven to agree with ours in any "
        "one of them.\n",
        show(header, lines) + "\n",
        f"{within} of {len(found)} within the time of the proof (or a second). With many points no "
        "single one is certain at 0.1 %: to move any one of them costs less than that. How many "
        "can move at once is bounded all the same.\n",
        "Why it is no more:\n\n" + "\n".join(f"- {line}" for line in reasons) + "\n",
        *[f"No answer: {row.instance}, {row.stop_reason} {row.note}\n" for row in lost],
    ]
    return write_page(directory / "certainty.md", parts)


def _seconds(row: Row) -> float:
    return float(row.details["certainty_seconds"])


def _line(row: Row) -> list[object]:
    proof, sure = float(row.details["proof_seconds"]), _seconds(row)
    sizes = row.sizes
    return [
        row.instance,
        "" if sizes is None else sizes.n_features,
        f"{100.0 * row.options['slack']:g} %",
        percent(row.gap),
        f"{proof:.2f}",
        f"{sure:.2f}",
        f"{sure / max(proof, 1e-3):.2f}",
        f"{100.0 * row.details['certain']:.1f} %",
        f"{100.0 * row.details['agreement']:.1f} %",
    ]


STUDY = Study(
    name="certainty",
    what="what is certain beyond the bound, and its time beside that of the proof",
    rows=rows,
    write=write_report,
)
