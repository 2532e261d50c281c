"""Output files of ``certikmeans solve``: one writer per format, checked early, written safely.

A new format is an entry of `WRITERS`: its option, its help text and its place in the order of
writing follow from it.
"""

from __future__ import annotations

import csv
import inspect
import io
import json
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer

from certikmeans._atomic import is_special, open_beside, write_atomically
from certikmeans.cli.inputs import STANDARD_STREAM
from certikmeans.cli.parameters import OUTPUT, OptionGroup
from certikmeans.cli.process import show_error, to_stderr, to_stdout
from certikmeans.errors import CertikmeansError, InputError

if TYPE_CHECKING:
    from certikmeans.certainty import Certainty
    from certikmeans.options import Options
    from certikmeans.problem import Problem
    from certikmeans.problem.io.text import PointIds
    from certikmeans.report.trace import Trace
    from certikmeans.result import Result


@final
@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Where the result goes.

    Parameters
    ----------
    files : mapping
        Paths of the files to write, by the names of their writers.
    json_to_stdout : bool
        Print the result as JSON instead of a summary.
    labels_to_stdout : bool
        Print the labels; then the summary goes to standard error.
    quiet : bool
        Print neither progress nor summary.
    base : int
        Number of the first point in messages.
    title : str
        Title of the report.
    check_command : str, optional
        The command that checks the certificate.
    slack : float, optional
        Slack of the certainty to compute; by default none is computed.
    """

    files: Mapping[str, Path] = field(default_factory=dict)
    json_to_stdout: bool = False
    labels_to_stdout: bool = False
    quiet: bool = False
    base: int = 0
    title: str = "certikmeans"
    check_command: str | None = None
    slack: float | None = None


@final
@dataclass(frozen=True, slots=True, eq=False)
class CompletedRun:
    """Everything that writers need to know about a run."""

    problem: Problem
    options: Options
    result: Result
    trace: Trace
    outputs: OutputOptions
    feature_names: tuple[str, ...] | None = None
    certainty: Certainty | None = None
    agreement: float | None = None  # adjusted Rand index with known classes
    saved: list[str] = field(default_factory=list)  # names of the writers that are done
    ids: PointIds | None = None  # names of the points
    penalty_unit: float | None = None  # penalty of a soft pair of confidence 1

    def document(self) -> str:
        """Return the result as JSON."""
        document = {
            **self.result.to_dict(),
            "options": self.options.to_dict(),
            "points_counted_from": 0,  # whatever the pair files do
        }
        if self.agreement is not None:
            document["adjusted_rand_index"] = self.agreement
        if self.problem.has_other_kinds:
            document["constraints"] = self._other_kinds()
        if self.ids is not None:
            document["ids"] = list(self.ids.ids)
        if self.certainty is not None:
            document["certainty"] = self.certainty.to_dict()
        return json.dumps(document, allow_nan=False) + "\n"

    def _other_kinds(self) -> dict[str, Any]:
        """Describe the constraints beside hard pairs."""
        from certikmeans.constraint_model.cannot_link_sets import sets_of_columns

        problem = self.problem
        limits = (problem.size_min, problem.size_max)
        return {
            "cannot_link_sets": len(sets_of_columns(problem.cannot_link_groups)),
            "size_min": None if limits[0] is None else limits[0].tolist(),
            "size_max": None if limits[1] is None else limits[1].tolist(),
            "total_demand": None if problem.demand is None else float(problem.demand.sum()),
            "soft_must_links": len(problem.soft_must_link),
            "soft_cannot_links": len(problem.soft_cannot_link),
            "penalty_unit": self.penalty_unit,
        }

    def summary(self) -> str:
        """Return the text for standard output."""
        from certikmeans.report.summary import summarize

        text = summarize(
            self.result,
            self.problem,
            presolve=self.trace.presolve,
            requested_gap=self.options.gap,
            agreement=self.agreement,
        )
        if self.penalty_unit is not None:
            text += f"\nPenalty       {self.penalty_unit:.10g} for a soft pair of confidence 1"
        if self.certainty is not None:
            from certikmeans.report.certainty import certainty_lines

            lines = certainty_lines(self.certainty, self.outputs.base)
            text = "\n".join([text, "", *lines])
        return f"{text}\n"


def _render_labels(run: CompletedRun, path: Path) -> bytes | None:
    text = labels_text(run)
    return None if text is None else text.encode()


def labels_text(run: CompletedRun) -> str | None:
    """Return a line per point: the label, or the id and the label below a header."""
    if run.result.labels is None:
        return None
    labels = run.result.labels.tolist()
    if run.ids is None:
        return "".join(f"{label}\n" for label in labels)
    content = io.StringIO()
    rows = csv.writer(content, lineterminator="\n")
    rows.writerow([run.ids.name, "label"])
    rows.writerows(zip(run.ids.ids, labels, strict=True))
    return content.getvalue()


def _render_certificate(run: CompletedRun, path: Path) -> bytes:
    from certikmeans.certificate.write import certificate_bytes

    if run.certainty is not None:
        try:
            return certificate_bytes(run.problem, run.result, run.certainty)
        except InputError as error:
            to_stderr(f"the certificate is about the bound alone: {error.message}\n")
    return certificate_bytes(run.problem, run.result)


def _render_report(run: CompletedRun, path: Path) -> bytes:
    from certikmeans.report.html import report_html

    return report_html(
        run.problem,
        run.result,
        run.trace,
        title=run.outputs.title,
        feature_names=run.feature_names,
        settings=run.options.to_dict(),
        agreement=run.agreement,
        command=shlex.join(["certikmeans", *sys.argv[1:]]),
        check=run.outputs.check_command,
        certified="certificate" in run.saved,
        certainty=run.certainty,
    ).encode()


def _render_plot(run: CompletedRun, path: Path) -> bytes:
    from certikmeans.report.plots import figure_format, render_figure

    return render_figure(
        run.problem, run.result, run.trace, figure_format(path), run.feature_names, run.certainty
    )


def _check_report(path: Path) -> None:
    from certikmeans.report.html import check_name

    if not is_special(path):
        check_name(path)


def _check_plot(path: Path) -> None:
    from certikmeans.report.plots import figure_format, require_matplotlib

    figure_format(path)
    require_matplotlib()


@final
@dataclass(frozen=True, slots=True)
class Writer:
    """An output format.

    Parameters
    ----------
    metavar, help : str
        For the help page.
    render : callable
        Returns the contents of the file; None if there is no labelling to write.
    check : callable, optional
        Raises before the run if the file cannot be made.
    """

    metavar: str
    help: str
    render: Callable[[CompletedRun, Path], bytes | None]
    check: Callable[[Path], None] | None = None


# By the name of the option, in the order of writing: what cannot be computed again comes first,
# and the report states whether a certificate was written.
WRITERS = {
    "output": Writer(
        "F.json",
        "Write the result as JSON to this file; - prints it.",
        lambda run, _: run.document().encode(),
    ),
    "labels": Writer(
        "F",
        "Write the labels to this file, one per line, behind the ids of points that have some; - "
        "prints them. --start-labels reads them.",
        _render_labels,
    ),
    "certificate": Writer(
        "F", "Write a proof that `certikmeans check` can verify.", _render_certificate
    ),
    "report": Writer(
        "F.html",
        "Write an HTML page: figures, progress, clusters, pairs, what is proven.",
        _render_report,
        _check_report,
    ),
    "plot": Writer("F.png", "Draw the clusters and the progress.", _render_plot, _check_plot),
}


@final
class _FileOptions(OptionGroup):
    """One option per entry of `WRITERS`; the command gets the paths by name."""

    def parameters(self) -> Iterator[inspect.Parameter]:
        for name, writer in WRITERS.items():
            info = typer.Option(
                f"--{name}", metavar=writer.metavar, rich_help_panel=OUTPUT, help=writer.help
            )
            yield inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[Path | None, info],
            )

    def build(self, values: Mapping[str, Any]) -> dict[str, Path]:
        return {name: values[name] for name in WRITERS if values[name] is not None}


OutputFiles = Annotated[dict[str, Path], _FileOptions()]


def write_outputs(run: CompletedRun) -> bool:
    """Write all files, then standard output; return whether every file could be written.

    Files come first, since standard output may be full or closed. An output that fails does not
    prevent the others.
    """
    outputs, result = run.outputs, run.result
    unexpected_error: Exception | None = None
    for name, writer in WRITERS.items():
        if name not in outputs.files:
            continue
        path = outputs.files[name]
        try:
            if _save(run, writer, path):
                run.saved.append(name)
        except Exception as error:
            show_error(f"{path}: could not be written ({type(error).__name__}: {error})")
            unexpected_error = unexpected_error or error
    if result.failure is not None:
        show_error(result.failure)
    show_infeasible(result, outputs.base)
    json_is_lost = "output" in outputs.files and "output" not in run.saved
    if outputs.json_to_stdout or json_is_lost:
        to_stdout(run.document())
    elif outputs.labels_to_stdout:
        if not outputs.quiet:
            to_stderr(run.summary())
        to_stdout(labels_text(run) or "")
    elif not outputs.quiet:
        to_stdout(run.summary())
    if unexpected_error is not None:
        raise unexpected_error
    return len(run.saved) == len(outputs.files)


def _save(run: CompletedRun, writer: Writer, path: Path) -> bool:
    try:
        content = writer.render(run, path)
        if content is None:
            to_stderr(f"{path}: not written, there is no labelling\n")
            return True
        write_atomically(path, content)
    except OSError as error:
        show_error(f"{path}: could not be written ({error.strerror or error})")
        return False
    except CertikmeansError as error:
        show_error(f"{path}: could not be written: {error.message}", hint=error.hint)
        return False
    if not run.outputs.quiet:
        to_stderr(f"wrote {path}\n")
    return True


def show_infeasible(result: Result, base: int) -> None:
    """If the problem is infeasible, print the proof; points count from ``base``."""
    if result.infeasibility is not None:
        show_error("no labelling respects every constraint")
        text, _, remedy = result.infeasibility.describe(base=base).partition("\n  what to do: ")
        remedy = remedy or (
            "certikmeans diagnose finds every conflict, and which pairs to remove; its "
            "--soft F writes all pairs as soft pairs, which may be violated at a price"
        )
        to_stderr(f"{text}\nhint: {remedy}\n")


def check_outputs(outputs: Iterable[Path], inputs: Iterable[Path] = ()) -> None:
    """Raise unless every output can be written without destroying another file.

    Called before the run starts: a wrong path must not cost the result.
    """
    used = {os.path.realpath(path): f"{path}: is an input of this run" for path in inputs}
    for path in outputs:
        if path == STANDARD_STREAM:
            raise InputError("-: this output cannot go to standard output", hint="name a file")
        identity = os.path.realpath(path)
        if identity in used:
            raise InputError(used[identity], hint="choose another name for the output")
        used[identity] = f"{path}: is named twice as an output"
        _check_output(path)


def _check_output(path: Path) -> None:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass  # reported below, or created later
    except OSError as error:
        name = str(path) if len(str(path)) <= 60 else str(path)[:60] + "..."
        raise InputError(
            f"{name}: cannot be written ({error.strerror})", hint="choose another name"
        ) from error
    if path.is_dir():
        raise InputError(f"{path}: is a directory", hint="name a file inside it")
    folder = path.parent
    if not folder.is_dir():
        raise InputError(
            f"{path}: the directory {str(folder)!r} does not exist",
            hint="create it first, or correct the path",
        )
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"{path}: is write-protected", hint="choose another name")
    if is_special(path):
        return
    try:
        beside, descriptor = open_beside(path)
        os.close(descriptor)
        beside.unlink()
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror})",
            hint=f"choose a directory in which files can be created, not {str(folder)!r}",
        ) from error
