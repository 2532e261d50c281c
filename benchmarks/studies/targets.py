"""Pages about targets: was the gap reached in time, what proved it, how it fell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.pages import percent, pyplot, show
from benchmarks.results import SKIPPED, ResultRow, ResultTable, commits, relative_gap

SHUTDOWN_SECONDS = 0.5  # seconds that a run may take to end after its limit
MIN_PLOTTED_GAP = 1e-7  # a proven gap of zero still needs a place on a logarithmic axis


def measured_on(rows: Sequence[ResultRow]) -> str:
    """Where, with what, and what was checked."""
    if not rows:
        return "Nothing was measured yet.\n"
    about = rows[-1].about
    versions = [
        f"{name} {about[name]}"
        for name in ("python", "numpy", "scipy", "numba", "scikit-learn")
        if name in about
    ]
    return (
        f"Measured on {about.get('cores', '?')} cores, commit {commits(rows)} (a plus: with "
        f"changes not committed), seed {', '.join(map(str, sorted({row.seed for row in rows})))}, "
        f"{', '.join(versions)}. Cost and pairs of every labelling were recomputed from the "
        "original rows; compilation is not on the clock.\n"
    )


def asked_limit(row: ResultRow) -> str:
    """The limit, and in brackets the one that the target is for, where it is another."""
    asked = row.facts["limit"]
    return f"{row.limit:g}" if row.limit == asked else f"{row.limit:g} ({asked:g})"


def proven(row: ResultRow) -> bool:
    """The gap of the target, by labels that respect every pair."""
    return row.gap is not None and row.gap <= row.facts["gap"] * (1 + 1e-9)


def reached(row: ResultRow) -> bool:
    """Proven, and within the limit of the target (a run may have had longer)."""
    when = seconds_to(row, row.facts["gap"]) or row.seconds
    return proven(row) and when is not None and when <= row.facts["limit"] + SHUTDOWN_SECONDS


def seconds_to(row: ResultRow, gap: float) -> float | None:
    """When the trace first has a gap of at most ``gap``."""
    for seconds, cost, bound in row.trace:
        found = relative_gap(cost, bound)
        if found is not None and found <= gap * (1 + 1e-9):
            return seconds
    return None


def verdict(row: ResultRow) -> str:
    """Reached or not; for rows without an answer, why."""
    if row.gap is None:
        note = row.note.strip().splitlines()[-1] if row.note else ""
        return f"{row.stop_reason}: {note}" if note else row.stop_reason
    if not reached(row):
        return "too late" if proven(row) else "missed"
    aim = row.facts.get("aim")
    return "reached" if aim is None or row.gap > aim else "reached, and the aim"


def certificate_cells(row: ResultRow) -> list[object]:
    """Verdict of the checker, bytes, seconds to check, and these over the seconds to prove."""
    paper = row.details.get("certificate")
    if paper is None:
        return ["", "", "", ""]
    stages = row.details["stages"]
    proving = sum(float(stages.get(stage, 0.0)) for stage in ("bounds", "search"))
    check = paper["check_seconds"]
    return [
        "accepted" if paper["accepted"] else f"REFUSED: {paper['reason']}",
        f"{paper['size']:,}",
        f"{check:.2f}",
        f"{check / max(proving, 1e-9):.2f}",
    ]


def proven_by(row: ResultRow) -> str:
    """The bound that the final value came from."""
    return str(row.details.get("bound", ""))


def each_bound(rows: Sequence[ResultRow]) -> str:
    """Bounds forced one by one: instance by bound, the gap with the row's own cost."""
    lines = [
        [
            row.instance, row.options["bound"], percent(row.gap), *_first_and_last(row),
            row.stop_reason if row.seconds is not None else verdict(row),
        ]
        for row in rows
    ]  # fmt: skip
    header = ["instance", "bound", "gap %", "first gap below 50 % (s)", "seconds", "ended"]
    return show(header, lines) + "\n" if lines else ""


def _first_and_last(row: ResultRow) -> list[str]:
    early = seconds_to(row, 0.5)
    end = "" if row.seconds is None else f"{row.seconds:.1f}"
    return ["" if early is None else f"{early:.2f}", end]


def summary(rows: Sequence[ResultRow]) -> str:
    """How many reached their target; whose pairs or certificates are wrong."""
    run = [row for row in rows if row.stop_reason != SKIPPED]
    broken = sum(bool(row.pairs_broken) for row in run)
    papers = [row.details["certificate"] for row in run if "certificate" in row.details]
    accepted = sum(paper["accepted"] for paper in papers)
    return (
        f"{sum(map(reached, run))} of {len(run)} rows reach their target; {broken} labellings "
        f"break a pair; {accepted} of {len(papers)} certificates are accepted.\n"
    )


def curves(rows: Sequence[ResultRow], path: Path, columns: int = 3) -> bool:
    """Draw gap against time, a panel per group of rows; False where there is nothing to draw."""
    drawn = [(row, *_curve(row)) for row in rows]
    drawn = [one for one in drawn if one[1]]
    if not drawn:
        return False
    plt = pyplot()
    per_panel = 6
    panels = [drawn[i : i + per_panel] for i in range(0, len(drawn), per_panel)]
    columns = min(columns, len(panels))
    lines = -(-len(panels) // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(5.2 * columns, 3.9 * lines), layout="constrained", squeeze=False
    )
    for place, members in zip(axes.flat, panels, strict=False):
        for number, (row, times, gaps) in enumerate(members):
            colour = f"C{number}"
            place.plot(times, gaps, color=colour, drawstyle="steps-post", label=row.instance)
            place.plot(times[-1], gaps[-1], "o", color=colour)
            place.axhline(row.facts["gap"], color=colour, lw=0.8, ls=":")
        place.set(xscale="log", yscale="log", xlabel="seconds", ylabel="gap")
        place.xaxis.set_minor_formatter("")
        place.grid(visible=True, alpha=0.3)
        place.legend(fontsize=7)
    for place in list(axes.flat)[len(panels) :]:
        place.set_visible(False)
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return True


def _curve(row: ResultRow) -> tuple[list[float], list[float]]:
    """Times and gaps where both a cost and a bound were known; the gap never rises."""
    times, gaps, least = [], [], float("inf")
    for seconds, cost, bound in row.trace:
        gap = relative_gap(cost, bound)
        if gap is not None:
            least = min(least, max(gap, MIN_PLOTTED_GAP))
            times.append(max(seconds, 1e-3))
            gaps.append(least)
    return times, gaps


def of_group(found: ResultTable, group: str, solver: str) -> list[ResultRow]:
    """The rows of one solver in one section of a page."""
    return [
        row
        for (_, name), row in found.items()
        if name == solver and row.facts.get("group") == group
    ]


def against_baselines(found: ResultTable, ours: str, title: str, introduction: str) -> list[str]:
    """What others found, and how far it lies above our labelling."""
    lines: list[list[object]] = []
    for (instance, solver), row in found.items():
        mine = found.get((instance, ours))
        if solver == ours or mine is None or mine.cost is None:
            continue
        excess, said = "", "no labelling that respects all pairs"
        if row.cost is not None and row.feasible:
            excess = percent(row.cost / mine.cost - 1.0)
            said = "CHEAPER THAN OURS" if row.cost < mine.cost * (1.0 - 1e-9) else "not cheaper"
        spent = "" if row.seconds is None else f"{row.seconds:.1f}"
        stages = mine.details.get("stages", {})
        lines.append(
            [instance, solver, excess, spent, f"{stages.get('heuristics', 0.0):.1f}", said]
        )
    if not lines:
        return []
    header = ["instance", "baseline", "above ours %", "seconds", "our heuristics (s)", "verdict"]
    return [title, introduction, show(header, lines) + "\n"]
