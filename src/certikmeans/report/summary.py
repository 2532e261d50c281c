"""Summary of a result as plain text."""

from __future__ import annotations

import textwrap

import numpy as np

from certikmeans._numbers import cost_text, count, duration, percent, rounded_down
from certikmeans.constraint_model.cannot_link_sets import sets_of_columns
from certikmeans.events import PresolveDone
from certikmeans.problem import Problem
from certikmeans.problem.data import size_limits
from certikmeans.result import Result
from certikmeans.status import Status
from certikmeans.tolerances import relative_gap

_WIDTH = 88
_LABEL_WIDTH = 14
_SIZES_SHOWN = 12


def summarize(
    result: Result,
    problem: Problem | None = None,
    *,
    presolve: PresolveDone | None = None,
    requested_gap: float | None = None,
    agreement: float | None = None,
) -> str:
    """Describe ``result`` in about a dozen lines of plain text.

    Gaps are rounded up, bounds down, and costs up where more than rounding errors of their
    evaluation is cut off. The pairs are checked against the labels.

    Parameters
    ----------
    result : Result
        The result.
    problem : Problem, optional
        Its problem; by default that of ``result.basis``. Without either, pairs are not checked.
    presolve : PresolveDone, optional
        Sizes after presolve; by default those of ``result.basis``.
    requested_gap : float, optional
        The gap of the options, shown beside the one reached.
    agreement : float, optional
        The adjusted Rand index against known classes.

    Returns
    -------
    str
        Lines without a trailing newline.
    """
    basis = result.basis
    if problem is None and basis is not None:
        problem = basis.problem
    if presolve is None and basis is not None and basis.presolved is not None:
        presolve = PresolveDone.of(0.0, result.n_points, basis.presolved.reduced)
    rows = [
        ("Status", f"{result.status}. {result.status.sentence}"),
        ("Stopped", f"{result.stop_reason.sentence}."),
    ]
    if result.labels is not None:
        rows += [
            ("Cost", _cost(result, problem)),
            ("Lower bound", f"{rounded_down(result.lower_bound)} ({result.bound} bound)"),
            ("Gap", _gap(result, requested_gap)),
            ("Proven", proven_statement(result)),
            *_bound_runs(result),
            ("Clusters", _clusters(result)),
            ("Pairs", _pairs(result, problem)),
            *_soft_pairs(result),
            *_other_kinds(result, problem),
        ]
    elif result.status is Status.UNKNOWN:
        rows.append(("Lower bound", f"{rounded_down(result.lower_bound)} ({result.bound} bound)"))
    if agreement is not None:
        rows.append(("Agreement", f"adjusted Rand index {agreement:.4f} with the known classes"))
    rows.append(("Input", _sizes(result, presolve)))
    rows.append(("Time", _times(result)))
    return "\n".join(_row(label, text) for label, text in rows)


def proven_statement(result: Result) -> str:
    """State in one or two sentences what is proven."""
    if result.status is Status.INFEASIBLE:
        return "no labelling respects all constraints."
    if result.labels is None:
        return "nothing: neither a labelling nor a proof of infeasibility was found."
    if result.gap == 0.0:
        return "no labelling that respects the constraints costs less: this one is optimal."
    excess = result.cost / result.lower_bound - 1.0 if result.lower_bound > 0.0 else np.inf
    if np.isinf(excess):
        return "nothing about the distance to the optimum, the bound is 0. The constraints hold."
    excess += 4 * np.finfo(float).eps * (1.0 + excess)  # covers the roundings above
    return (
        "no labelling that respects the constraints costs less than the lower bound, "
        f"so this one costs at most {percent(excess)} more than the best possible."
    )


def _bound_runs(result: Result) -> list[tuple[str, str]]:
    """List the bounds that were run if one was not enough, and what would help."""
    rows = []
    if result.status is not Status.OPTIMAL or len(result.attempts) > 2:
        runs = [
            f"{one.bound} {percent(relative_gap(result.cost, one.lower_bound))} "
            f"after {duration(one.ended)}"
            for one in result.attempts
        ]
        rows += [("Bounds run", "; ".join(runs))] if runs else []
    if result.advice is not None:
        rows.append(("What helps", f"{result.advice}."))
    return rows


def _cost(result: Result, problem: Problem | None) -> str:
    if result.n_soft_must_link + result.n_soft_cannot_link == 0:
        return f"{cost_text(result.cost)} ({_squares(problem)} to the centres)"
    return (
        f"{cost_text(result.cost)} ({cost_text(result.sum_of_squares)} {_squares(problem)} to "
        f"the centres, {cost_text(result.penalty)} for violated soft pairs)"
    )


def _soft_pairs(result: Result) -> list[tuple[str, str]]:
    """Return the number of violated soft pairs of each kind, if there are soft pairs."""
    parts = []
    for kind, total in (
        ("must_link", result.n_soft_must_link),
        ("cannot_link", result.n_soft_cannot_link),
    ):
        if total:
            violated = sum(one.kind == kind for one in result.violated_soft_pairs)
            parts.append(f"{violated:,} of {count(total, 'soft ' + kind.replace('_', '-'))}")
    return [("Soft pairs", f"violated: {' and '.join(parts)}")] if parts else []


def _squares(problem: Problem | None) -> str:
    weighted = problem is not None and not np.all(problem.weights == 1.0)
    return "weighted squared distances" if weighted else "squared distances"


def _gap(result: Result, requested: float | None) -> str:
    reached = percent(result.gap)
    return reached if requested is None else f"{reached} (requested: {100 * requested:g} %)"


def _clusters(result: Result) -> str:
    assert result.labels is not None
    sizes = np.sort(np.bincount(result.labels, minlength=result.n_clusters))[::-1]
    shown = ", ".join(f"{size:,}" for size in sizes[:_SIZES_SHOWN])
    if len(sizes) > _SIZES_SHOWN:
        shown += f", ..., {sizes[-1]:,}"
    empty = int((sizes == 0).sum())
    note = f" ({count(empty, 'cluster')} empty)" if empty else ""
    return f"{count(result.n_clusters, 'cluster')}, number of points: {shown}{note}"


def _pairs(result: Result, problem: Problem | None) -> str:
    assert result.labels is not None
    if problem is None:
        return (
            f"{count(result.n_must_link, 'must-link')} and "
            f"{count(result.n_cannot_link, 'cannot-link')}"
        )
    kept, broken = [], []
    for kind, pairs, want_same in (
        ("must-link", problem.must_link, True),
        ("cannot-link", problem.cannot_link, False),
    ):
        ends = result.labels[pairs]
        wrong = int(((ends[:, 0] == ends[:, 1]) != want_same).sum())
        kept.append(count(len(pairs), kind))
        if wrong:
            broken.append(f"{wrong:,} of {count(len(pairs), kind)}")
    if broken:
        return f"BROKEN: {' and '.join(broken)}. This is a bug in certikmeans: please report it."
    return f"{' and '.join(kept)}, all respected"


def _other_kinds(result: Result, problem: Problem | None) -> list[tuple[str, str]]:
    """Describe cannot-link sets and limits on sizes, checked against the labels."""
    if problem is None or result.labels is None:
        return []
    rows = []
    sets = sets_of_columns(problem.cannot_link_groups)
    if sets:
        broken = sum(len(np.unique(result.labels[one])) < len(one) for one in sets)
        kept = "all respected" if not broken else f"BROKEN: {broken:,}. This is a bug: report it"
        rows.append(("Sets", f"{count(len(sets), 'cannot-link set')}, {kept}"))
    if problem.has_sizes:
        limits = size_limits(problem)
        totals = ", ".join(f"{total:g}" for total in limits.totals(result.labels)[:_SIZES_SHOWN])
        more = ", ..." if problem.n_clusters > _SIZES_SHOWN else ""
        kept = "respected" if limits.satisfied_by(result.labels) else "BROKEN, a bug: report it"
        sums = "sums of demands" if problem.demand is not None else "sizes"
        rows.append(("Sizes", f"{_limits(problem)}, {kept}; {sums} {totals}{more}"))
    return rows


def _limits(problem: Problem) -> str:
    """Describe the limits on sizes.

    >>> _limits(Problem.from_data([[0.0], [1.0], [2.0]], 2, size_max=2))
    'at most 2'
    """
    parts = []
    for words, limit in (("at least", problem.size_min), ("at most", problem.size_max)):
        if limit is not None:
            distinct = [f"{value:g}" for value in limit[:_SIZES_SHOWN]]
            shown = distinct[0] if len(set(distinct)) == 1 else ", ".join(distinct)
            parts.append(f"{words} {shown}")
    return " and ".join(parts)


def constraint_phrases(problem: Problem) -> str:
    """List the constraints of a problem.

    >>> constraint_phrases(Problem.from_data([[0.0], [1.0], [2.0]], 2, must_link=[(0, 1)]))
    '1 must-link and 0 cannot-links'
    """
    phrases = [
        f"{count(len(problem.must_link), 'must-link')} and "
        f"{count(len(problem.cannot_link), 'cannot-link')}"
    ]
    n_sets = len(sets_of_columns(problem.cannot_link_groups))
    if n_sets:
        phrases.append(count(n_sets, "cannot-link set"))
    if problem.has_soft_pairs:
        phrases.append(
            f"{count(len(problem.soft_must_link), 'soft must-link')} and "
            f"{count(len(problem.soft_cannot_link), 'soft cannot-link')}"
        )
    if problem.has_sizes:
        sums = "sums of demands" if problem.demand is not None else "sizes"
        phrases.append(f"{sums} {_limits(problem)}")
    return ", ".join(phrases)


def _sizes(result: Result, presolve: PresolveDone | None) -> str:
    text = f"{count(result.n_points, 'point')}, {count(result.n_features, 'feature')}"
    if presolve is None:
        return text
    text += f"; after presolve {count(presolve.n_groups, 'group')}"
    text += f" in {count(presolve.n_dims, 'dimension')}"
    if presolve.n_components:
        text += (
            f", {count(presolve.n_components, 'component')} of cannot-linked groups "
            f"(the largest has {presolve.largest_component:,})"
        )
    return text


def _times(result: Result) -> str:
    stages = [f"{stage} {duration(s)}" for stage, s in result.seconds.items() if stage != "total"]
    total = duration(result.seconds.get("total", sum(result.seconds.values())))
    return f"{total} ({', '.join(stages)})" if stages else total


def _row(label: str, text: str) -> str:
    indent = " " * _LABEL_WIDTH
    lines = textwrap.wrap(
        text, _WIDTH - _LABEL_WIDTH, break_long_words=False, break_on_hyphens=False
    )
    return f"{label:<{_LABEL_WIDTH}}" + f"\n{indent}".join(lines)
