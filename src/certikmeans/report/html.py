"""Self-contained HTML report of a run."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from html import escape
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from certikmeans._numbers import cost_text, count, duration, percent, rounded_down
from certikmeans.certainty import Certainty
from certikmeans.errors import InputError, MissingExtraError
from certikmeans.problem import Problem
from certikmeans.report.certainty import certainty_html
from certikmeans.report.plot_data import cluster_color, cluster_symbol
from certikmeans.report.plots import clusters_svg, progress_svg
from certikmeans.report.summary import proven_statement
from certikmeans.report.trace import Trace
from certikmeans.result import Result

STYLE = """
:root{color-scheme:light;--ink:#1d2530;--soft:#5a6472;--line:#dde2e8;--good:#00795a}
*{box-sizing:border-box}
body{margin:0;background:#f4f6f8;color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:62rem;margin:0 auto;padding:1.5rem 1rem 3rem}
h1{font-size:1.5rem;margin:.2rem 0 1rem;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:0 0 .7rem}
h3{font-size:.95rem;margin:.4rem 0}
section{background:#fff;border:1px solid var(--line);border-radius:10px;padding:1.1rem 1.2rem;
margin-top:1rem}
p{margin:.4rem 0}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.7rem}
.card{background:#fff;border:1px solid var(--line);border-radius:10px;padding:.7rem .9rem;
border-top:4px solid #c98a00;overflow-wrap:anywhere}
.optimal .card{border-top-color:var(--good)}
.infeasible .card{border-top-color:#b3261e}
.card span{display:block;color:var(--soft);font-size:.82rem}
.card b{font-size:1.15rem;font-variant-numeric:tabular-nums}
svg{display:block;width:100%;height:auto}
.note{color:var(--soft);font-size:.88rem}
.two{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(22rem,100%),1fr));gap:1rem}
.three{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(16rem,100%),1fr));gap:1.2rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.88rem;font-variant-numeric:tabular-nums}
td,th{padding:.25rem .8rem .25rem 0;border-bottom:1px solid var(--line);text-align:left;
white-space:nowrap}
.numbers td,.numbers th{text-align:right;padding:.25rem .5rem}
.numbers th{white-space:normal;overflow-wrap:break-word;vertical-align:bottom}
pre{background:#f0f3f6;border-radius:6px;padding:.6rem .8rem;overflow-x:auto;font-size:.85rem;
white-space:pre-wrap;overflow-wrap:anywhere}
code{background:#f0f3f6;border-radius:4px;padding:0 .25rem}
details{margin:.3rem 0 .8rem}
summary{cursor:pointer;color:#0b5cad}
@media print{body{background:#fff}section{break-inside:avoid}}
""".replace("\n", "")


_MAX_FEATURES, _MAX_CLUSTERS, _MAX_PAIRS = 12, 200, 200
_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn")


def check_name(path: Path) -> None:
    """Reject a name by which browsers and mail programs do not recognise a page."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(
            f"{path}: the report is a page of HTML",
            hint=f"name it {path.with_suffix('.html').name}",
        )


def report_html(
    problem: Problem,
    result: Result,
    trace: Trace | None = None,
    *,
    title: str = "certikmeans",
    feature_names: tuple[str, ...] | None = None,
    settings: Mapping[str, Any] | None = None,
    agreement: float | None = None,
    command: str | None = None,
    check: str | None = None,
    certified: bool = False,
    certainty: Certainty | None = None,
) -> str:
    """Return a page about a run: what was found, what is proven, and how to check it.

    The page is self-contained. Without matplotlib it has no figures.

    Parameters
    ----------
    problem : Problem
        The problem.
    result : Result
        Its result.
    trace : Trace, optional
        The listener that was passed to ``solve``; needed for figures of the progress.
    title : str
        Heading of the page.
    feature_names : tuple of str, optional
        Names of the features.
    settings : mapping, optional
        The options of the run; ``gap`` is drawn.
    agreement : float, optional
        The adjusted Rand index against known classes.
    command, check : str, optional
        The command that made this run, and the one that checks its certificate.
    certified : bool
        Whether a certificate was written.
    certainty : Certainty, optional
        What holds for every labelling that is nearly as good.

    Returns
    -------
    str
        A complete document that contains its figures.
    """
    trace = Trace() if trace is None else trace
    sections = [
        _headline(result, agreement),
        _proof(result, check, certified),
        "" if certainty is None else _section("What is certain", certainty_html(certainty)),
        _picture(problem, result, feature_names, certainty),
        _progress(result, trace, settings or {}),
        _clusters(problem, result, feature_names),
        _pairs(problem, result),
        _details(problem, result, settings or {}, command),
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
        f"<main><h1>{escape(title)}</h1>{''.join(sections)}</main></body></html>\n"
    )


def _section(heading: str, *content: str) -> str:
    return f"<section><h2>{heading}</h2>{''.join(content)}</section>"


def _table(rows: Iterable[Iterable[str]], header: Iterable[str] = (), kind: str = "") -> str:
    """Return a table; the cells are HTML."""
    head = "".join(f"<th>{cell}</th>" for cell in header)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    top = f"<thead><tr>{head}</tr></thead>" if head else ""
    return f'<div class="wide"><table class="{kind}">{top}<tbody>{body}</tbody></table></div>'


def _headline(result: Result, agreement: float | None) -> str:
    facts = [("status", str(result.status))]
    if result.labels is not None:
        facts += [
            ("cost", cost_text(result.cost, 8)),
            *_cost_parts(result),
            ("lower bound", rounded_down(result.lower_bound, 8)),
            ("gap", percent(result.gap)),
        ]
    if agreement is not None:
        facts.append(("agreement with the known classes", f"{agreement:.4f}"))
    facts.append(("time", duration(result.seconds.get("total", 0.0))))
    cards = "".join(
        f'<div class="card"><span>{escape(name)}</span><b>{escape(value)}</b></div>'
        for name, value in facts
    )
    return f'<div class="cards {result.status}">{cards}</div>'


def _cost_parts(result: Result) -> list[tuple[str, str]]:
    if result.n_soft_must_link + result.n_soft_cannot_link == 0:
        return []
    return [
        ("sum of squares", cost_text(result.sum_of_squares, 8)),
        ("penalties", cost_text(result.penalty, 8)),
    ]


def _proof(result: Result, check: str | None, certified: bool) -> str:
    text = f"<p>{escape(result.status.sentence)} "
    text += f"The run ended because {escape(result.stop_reason.sentence)}.</p>"
    proven = proven_statement(result)
    text += f"<p>Proven: {escape(proven)}</p>"
    if result.labels is not None:
        text += (
            f"<p>The bound is the <code>{escape(result.bound)}</code> bound, rounding included, "
            "and rounded down.</p>"
        )
    if result.infeasibility is not None:
        text += f"<pre>{escape(result.infeasibility.describe())}</pre>"
    if check is not None:
        sentence = (
            "A certificate was written. A program that shares no code with the solver checks it:"
            if certified
            else "No certificate was written. Solve again with <code>--certificate F</code>, and a "
            "program that shares no code with the solver checks it:"
        )
        text += f"<p>{sentence}</p><pre>{escape(check)}</pre>"
    elif result.labels is not None:
        text += (
            "<p>Fitted with <code>keep_proof=True</code>, a model writes the proof with "
            "<code>model.write_certificate(path)</code>; <code>certikmeans check</code> and "
            "<code>certikmeans.check_certificate</code>, which share no code with the solver, "
            "check it.</p>"
        )
    return _section("What is proven", text)


def _picture(
    problem: Problem,
    result: Result,
    names: tuple[str, ...] | None,
    certainty: Certainty | None = None,
) -> str:
    try:
        drawn, notes = clusters_svg(problem, result, names, certainty)
    except MissingExtraError as error:
        drawn, notes = "", [f"no figures: {error.message} ({error.hint})"]
    caption = f'<p class="note">{escape("; ".join(notes))}.</p>' if notes else ""
    return _section("Clusters", drawn, caption)


def _progress(result: Result, trace: Trace, settings: Mapping[str, Any]) -> str:
    gap = settings.get("gap")
    try:
        figures = progress_svg(result, trace, gap if isinstance(gap, float) else None)
    except MissingExtraError:  # reported with the figure of the clusters
        return ""
    return _section("Progress", f'<div class="two">{"".join(figures)}</div>') if figures else ""


def _clusters(problem: Problem, result: Result, names: tuple[str, ...] | None) -> str:
    """Return a table with size, weight, cost, radius and centre of every cluster."""
    if result.labels is None or result.centers is None:
        return ""
    n_shown = min(problem.n_features, _MAX_FEATURES)
    features = names or tuple(f"feature {j}" for j in range(problem.n_features))
    header = ["", "cluster", "points", "weight", "cost", "radius"]
    header += [f"centre: {escape(name[:40])}" for name in features[:n_shown]]
    rows = []
    for cluster in range(min(result.n_clusters, _MAX_CLUSTERS)):
        inside = result.labels == cluster
        sign = f'<span style="color:{cluster_color(cluster)}">{cluster_symbol(cluster)}</span>'
        if not inside.any():
            rows.append([sign, str(cluster), "0", "0", "0", *[""] * (n_shown + 1)])
            continue
        squares = ((problem.points[inside] - result.centers[cluster]) ** 2).sum(axis=1)
        weights = problem.weights[inside]
        rows.append(
            [
                sign,
                str(cluster),
                f"{int(inside.sum()):,}",
                f"{float(weights.sum()):.7g}",
                f"{float(weights @ squares):.7g}",
                f"{float(np.sqrt(squares.max())):.5g}",
                *(f"{value:.5g}" for value in result.centers[cluster, :n_shown].tolist()),
            ]
        )
    notes = []
    if n_shown < problem.n_features:
        notes.append(f"centres: {n_shown} of {problem.n_features:,} features")
    if len(rows) < result.n_clusters:
        notes.append(f"{len(rows)} of {result.n_clusters:,} clusters")
    note = f'<p class="note">{"; ".join(notes)}.</p>' if notes else ""
    text = '<p class="note">The radius is the distance of the farthest point from the centre.</p>'
    return _section("Table of clusters", _table(rows, header, "numbers"), text, note)


def _pairs(problem: Problem, result: Result) -> str:
    both = (("must-link", problem.must_link, True), ("cannot-link", problem.cannot_link, False))
    if not len(problem.must_link) and not len(problem.cannot_link) and not problem.has_soft_pairs:
        return _section("Pairs", "<p>There are no pairs.</p>")
    text = ""
    for kind, pairs, together in both:
        line = count(len(pairs), kind)
        if result.labels is not None and len(pairs):
            same = result.labels[pairs[:, 0]] == result.labels[pairs[:, 1]]
            wrong = int((same != together).sum())
            line += f", {wrong:,} BROKEN: a bug" if wrong else ", all respected"
        text += f"<p>{line}.</p>"
        rows = []
        for i, j in pairs[:_MAX_PAIRS].tolist():
            distance = float(np.linalg.norm(problem.points[i] - problem.points[j]))
            clusters = "" if result.labels is None else f"{result.labels[i]} / {result.labels[j]}"
            rows.append([str(i), str(j), clusters, f"{distance:.5g}"])
        if rows:
            more = f", the first {len(rows)}" if len(rows) < len(pairs) else ""
            table = _table(rows, ("point", "point", "clusters", "distance"), "numbers")
            text += f"<details><summary>{kind}s{more}</summary>{table}</details>"
    text += _soft_pairs(problem, result)
    return _section("Pairs", text, '<p class="note">Points are numbered from 0.</p>')


def _soft_pairs(problem: Problem, result: Result) -> str:
    """Return the number of soft pairs, and a table of the violated ones."""
    if not problem.has_soft_pairs:
        return ""
    violated = result.violated_soft_pairs
    text = f"<p>{count(len(problem.soft_must_link), 'soft must-link')} and "
    text += f"{count(len(problem.soft_cannot_link), 'soft cannot-link')}"
    if result.labels is None:
        return text + ".</p>"
    text += f", {len(violated):,} violated, for {cost_text(result.penalty, 8)} of the cost.</p>"
    if not violated:
        return text
    rows = [
        [
            one.kind.replace("_", "-"),
            str(one.first),
            str(one.second),
            f"{result.labels[one.first]} / {result.labels[one.second]}",
            f"{one.penalty:.5g}",
        ]
        for one in violated[:_MAX_PAIRS]
    ]
    more = f", the first {len(rows)}" if len(rows) < len(violated) else ""
    table = _table(rows, ("kind", "point", "point", "clusters", "penalty"), "numbers")
    return f"{text}<details open><summary>violated soft pairs{more}</summary>{table}</details>"


def _details(
    problem: Problem, result: Result, settings: Mapping[str, Any], command: str | None
) -> str:
    run = [
        ("points", f"{problem.n_points:,}"),
        ("features", f"{problem.n_features:,}"),
        ("clusters", f"{problem.n_clusters:,}"),
        ("nodes of the tree", f"{result.nodes:,}"),
        *((f"seconds: {stage}", f"{seconds:.3f}") for stage, seconds in result.seconds.items()),
    ]
    options = [(name, "none" if value is None else str(value)) for name, value in settings.items()]
    versions = [("certikmeans", result.version), ("Python", platform.python_version())]
    versions += [(name, known) for name in _PACKAGES if (known := _version(name))]
    text = "" if command is None else f"<p>Command</p><pre>{escape(command)}</pre>"
    text += '<div class="three">'
    for heading, rows in (("Run", run), ("Options", options), ("Versions", versions)):
        if rows:
            cells = [[escape(name), escape(value)] for name, value in rows]
            text += f"<div><h3>{heading}</h3>{_table(cells)}</div>"
    return _section("Details", text + "</div>")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
