"""What is certain, and what it costs to know: time beside that of the proof."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks.datasets.base import Recipe
from benchmarks.datasets.highdim import make_real
from benchmarks.datasets.recipes import (
    blobs,
    real_with_pairs,
    standardized,
    synthetic_with_pairs,
)
from benchmarks.pages import percent, show, write_page
from benchmarks.results import ResultRow, RunRequest, commits, latest
from benchmarks.solvers.certainty import CertaintySolver
from benchmarks.study import Scope, Study

LIMIT = 120.0
SLACK, GAP = 1e-3, 1e-3


def rows(scope: Scope) -> Iterator[RunRequest]:
    """Every instance."""
    for one in _instances(scope):
        yield RunRequest(one, CertaintySolver(SLACK, one.facts.get("gap", GAP)), LIMIT)


def _instances(scope: Scope) -> Iterator[Recipe]:
    if scope.directory is not None and not scope.small:
        for name, kind in (("seeds", "ML+CL"), ("hemi", "ML"), ("pr2392", "CL"), ("htru2", "ML")):
            yield Recipe(f"{name} {kind}", partial(real_with_pairs, name, kind))
    for n in (1_200,) if scope.small else (2_100, 21_000, 210_000):
        for kind in ("CL",) if scope.small else ("CL", "ML+CL"):
            yield Recipe(f"synthetic-{n} {kind}", partial(synthetic_with_pairs, n, kind, 2, 3))
    for n, d in ((300, 20),) if scope.small else ((2_000, 50), (20_000, 30)):
        yield Recipe(f"blobs-{n}-{d} none", partial(blobs, n, d, 5))
    if not scope.small:
        yield Recipe("wine, standardised none", partial(standardized, "wine", 3))
        for name, gap in (("breast cancer", GAP), ("digits", 5e-3), ("satimage", 3e-3)):
            yield Recipe(f"{name} none", partial(make_real, name, False), {"gap": gap})


def write_report(rows: Sequence[ResultRow], directory: Path) -> Path:
    """Write ``certainty.md``."""
    found = [row for row in latest(rows).values() if "agreement" in row.details]
    lost = [row for row in latest(rows).values() if "agreement" not in row.details]
    lines = [_line(row) for row in found]
    header = [
        *("instance", "d", "slack", "gap", "by", "proof s", "certainty s", "ratio", "from"),
        *("certain", "grouped the same"),
    ]
    reasons = sorted({f"{row.instance}: {row.details['reason']}" for row in found})
    parts = [
        "# Certainty\n",
        f"Written by `python -m benchmarks certainty` from `certainty.jsonl`, commit "
        f"{commits(found)}. `proof s` is the time of bounds and search to the gap, `certainty s` "
        "that of `result.certainty(slack)` after it, on the same machine, compilation excluded; "
        "of runs that take a few seconds the best of three each. `by` is the bound that the proof "
        "comes from, and `from` what certainty was derived from. `certain` is the share of points "
        "that are each in the same cluster in every labelling within the slack; `grouped the same` "
        "the share that is proven to agree with ours in any one of them, both rounded down.\n",
        show(header, lines) + "\n",
        f"{_within(found)} With many points no single one is certain at 0.1 %: to move any one of "
        "them costs less than that. How many can move at once is bounded all the same. Where the "
        "proof is by parts of the points nothing follows "
        "([why](../concepts/certainty.md#parts-of-the-points)).\n",
        "Why it is no more:\n\n" + "\n".join(f"- {line}" for line in reasons) + "\n",
        *[f"No answer: {row.instance}, {row.stop_reason} {row.note}\n" for row in lost],
    ]
    return write_page(directory / "certainty.md", parts)


def _proof(row: ResultRow) -> float:
    return float(row.details["proof_seconds"])


def _seconds(row: ResultRow) -> float:
    return float(row.details["certainty_seconds"])


def _within(found: Sequence[ResultRow]) -> str:
    """How many take no longer than the proof, and how much longer the others take."""
    longer = [_seconds(row) - _proof(row) for row in found if _seconds(row) > _proof(row)]
    said = f"{len(found) - len(longer)} of {len(found)} take no longer than the proof"
    return f"{said}; the others {max(longer):.2f} s more at most." if longer else f"{said}."


def _line(row: ResultRow) -> list[object]:
    proof, sure = _proof(row), _seconds(row)
    sizes = row.sizes
    return [
        row.instance,
        "" if sizes is None else sizes.n_features,
        f"{100.0 * row.options['slack']:g} %",
        percent(row.gap),
        row.details["bound"],
        f"{proof:.3f}",
        f"{sure:.3f}",
        f"{sure / max(proof, 1e-3):.2f}",
        row.details["method"],
        _down(row.details["certain"]),
        _down(row.details["agreement"]),
    ]


def _down(share: float) -> str:
    """In per cent, rounded down.

    >>> _down(0.99999)
    '99.99 %'
    """
    return f"{math.floor(1e4 * share) / 100.0:.2f} %"


STUDY = Study(
    name="certainty",
    what="what is certain beyond the bound, and its time beside that of the proof",
    rows=rows,
    write=write_report,
)
