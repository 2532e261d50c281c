"""``certikmeans diagnose``: contradictions among pairs, and which pairs to remove."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer

from certikmeans._atomic import write_atomically
from certikmeans._numbers import count
from certikmeans.cli.inputs import (
    Inputs,
    PairFiles,
    PairOptions,
    parse_penalty,
    read_table,
    reject_standard_input,
    with_standard_input,
)
from certikmeans.cli.outputs import check_outputs
from certikmeans.cli.parameters import (
    INPUT,
    LIMITS,
    OUTPUT,
    AsJson,
    expand_groups,
    parse_seconds,
)
from certikmeans.cli.process import ExitCode, to_stderr, to_stdout
from certikmeans.errors import Argument, InputError, Message

if TYPE_CHECKING:
    from certikmeans.constraint_model.soft_pairs import PricedPairs
    from certikmeans.problem.conflicts import Diagnosis
    from certikmeans.problem.constraints import Constraints
    from certikmeans.problem.links import Links

Pair = tuple[int, int]

_MAX_SHOWN = 20

Clusters = Annotated[
    int,
    typer.Option(
        "-k", "--n-clusters", metavar="K", rich_help_panel=INPUT, help="Number of clusters."
    ),
]
PointCount = Annotated[
    int | None,
    typer.Option(
        "-n",
        "--n-points",
        metavar="N",
        rich_help_panel=INPUT,
        help="Number of points; default: the rows of DATA, or else the largest index.",
    ),
]
DataPath = Annotated[
    Path | None,
    typer.Argument(
        metavar="[DATA]", help="The points; only their number is used.", show_default=False
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        metavar="F",
        rich_help_panel=OUTPUT,
        help="Write the remaining pairs to this file, as 'ML i j' and 'CL i j', or as JSON if it "
        "ends in .json.",
    ),
]
SoftOutput = Annotated[
    Path | None,
    typer.Option(
        "--soft",
        metavar="F",
        rich_help_panel=OUTPUT,
        help="Write all pairs as soft pairs to this file, as 'SML i j p' and 'SCL i j p', or as "
        "JSON if it ends in .json: 'solve' may then violate each at the price p (--penalty).",
    ),
]
Penalty = Annotated[
    str | None,
    typer.Option(
        metavar="P",
        rich_help_panel=OUTPUT,
        help="Price of a pair in the file of --soft: a number of the size of a squared distance, "
        "or mean, the total sum of squares of DATA divided by the number of points; default: "
        "mean, if DATA is given.",
    ),
]
ShowAll = Annotated[
    bool,
    typer.Option(
        "--all",
        rich_help_panel=OUTPUT,
        help=f"Print every conflict, not only {_MAX_SHOWN} of each kind.",
    ),
]
TimeLimit = Annotated[
    str,
    typer.Option(
        metavar="S",
        rich_help_panel=LIMITS,
        help="Seconds for finding the smallest set to remove; then the best one found is returned "
        "with a lower bound on its size. 0 or none: no limit.",
    ),
]


@expand_groups
def diagnose_command(
    n_clusters: Clusters,
    files: PairOptions,
    data: DataPath = None,
    n_points: PointCount = None,
    time_limit: TimeLimit = "30",
    output: Output = None,
    soft: SoftOutput = None,
    penalty: Penalty = None,
    as_json: AsJson = False,
    show_all: ShowAll = False,
) -> ExitCode:
    """Find every contradiction among pairs, and a smallest set of pairs to remove.

    Cannot-links whose ends are connected by must-links; more than K groups with cannot-links
    between all of them; with two clusters, odd cycles. Nothing is clustered.

    Contradicting pairs can also be kept as soft pairs, which 'solve' may violate at a price.
    """
    seconds = parse_seconds(time_limit)
    files = with_standard_input(files)
    inputs = files.paths() + ([] if data is None else [data])
    reject_standard_input(inputs)
    if not files.paths():
        raise InputError("no file of pairs was given", hint="add --constraints F")
    written = [path for path in (output, soft) if path is not None]
    if written:
        check_outputs(written, inputs)
    unit = _given_penalty(soft, penalty, data)
    if data is not None:
        points = read_table(Inputs(data=data)).points
        n_points = len(points)
        if soft is not None and unit is None:
            from certikmeans.problem.data import mean_squared_distance

            unit = mean_squared_distance(points)
    locations = _PairLocations()
    pairs = locations.read(files, n_points)
    to_stderr(
        f"read {len(pairs.must_link):,} must-links and {len(pairs.cannot_link):,} cannot-links\n"
    )
    found = pairs.conflicts(n_clusters, time_limit=None if math.isinf(seconds) else seconds)
    if output is not None:
        _write(output, found.cleaned(pairs), files.base)
    if soft is not None:
        assert unit is not None
        _write(soft, pairs.softened(unit), files.base)
        to_stderr(f"every pair costs {unit:.10g} where it is violated\n")
    to_stdout(
        json.dumps(_document(found, locations), allow_nan=False) + "\n"
        if as_json
        else _describe(found, locations, files.base, None if show_all else _MAX_SHOWN)
    )
    if found.feasible:
        return ExitCode.GAP_REACHED
    return ExitCode.INFEASIBLE if found.decided else ExitCode.STOPPED_EARLY


@final
class _PairLocations:
    """Files and lines of every pair; a pair may occur several times."""

    def __init__(self) -> None:
        self._locations: dict[tuple[str, Pair], list[str]] = defaultdict(list)

    def read(self, files: PairFiles, n_points: int | None) -> Constraints:
        """Read the files of pairs and record where each pair is written."""
        from certikmeans.problem.constraints import Constraints
        from certikmeans.problem.io import read_links, read_partial_labels

        pairs = Constraints(n_points=n_points)
        kinds: Any = (
            (files.must_link, "must"),
            (files.cannot_link, "cannot"),
            (files.constraints, None),
        )
        for paths, kind in kinds:
            for path in paths:
                links = read_links(path, kind=kind, one_based=files.one_based)
                pairs |= Constraints.from_pairs(links.must, links.cannot, n_points)
                self._record("must", links.must)
                self._record("cannot", links.cannot)
        if files.partial_labels is not None:
            labels = read_partial_labels(files.partial_labels, n_points=n_points)
            known = Constraints.from_partial_labels(labels)
            pairs |= known
            for kind, array in (("must", known.must_link), ("cannot", known.cannot_link)):
                for i, j in array.tolist():
                    self._locations[kind, (i, j)].append(
                        f"{files.partial_labels}, labels of points {i} and {j} (from 0)"
                    )
        return pairs

    def _record(self, kind: str, links: Links) -> None:
        for row, (i, j) in enumerate(links.pairs.tolist()):
            self._locations[kind, (min(i, j), max(i, j))].append(links.where(row))

    def of(self, kind: str, pair: Pair) -> list[str]:
        """Return the locations of a pair."""
        return self._locations[kind, (min(pair), max(pair))]


def _given_penalty(soft: Path | None, penalty: str | None, data: Path | None) -> float | None:
    """Return the penalty of soft pairs as a number; None for ``mean``, which needs the points."""
    if soft is None:
        if penalty is not None:
            raise InputError(
                Message(Argument("penalty"), " is the price of pairs in the file of --soft"),
                hint="add --soft F",
            )
        return None
    unit = None if penalty is None else parse_penalty(penalty)
    if unit is None and data is None:
        raise InputError(
            "the price of a violated pair is not known",
            hint="add --penalty P, or DATA, of which it is the mean squared distance",
        )
    return unit


def _write(path: Path, pairs: Constraints, base: int) -> None:
    """Write pairs, hard ones and soft ones, with points counted from ``base``."""
    rows: dict[str, list[list[Any]]] = {
        "ml": (pairs.must_link + base).tolist(),
        "cl": (pairs.cannot_link + base).tolist(),
        "sml": _priced_rows(pairs.soft_must_link, base),
        "scl": _priced_rows(pairs.soft_cannot_link, base),
    }
    if path.suffix.lower() == ".json":
        present = {kind: found for kind, found in rows.items() if found or kind in ("ml", "cl")}
        text = json.dumps(present) + "\n"
    else:
        text = "".join(
            f"{kind.upper()} {' '.join(map(str, row))}\n"
            for kind, found in rows.items()
            for row in found
        )
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise InputError(
            f"{path}: could not be written ({error.strerror or error})", hint="choose another name"
        ) from error
    to_stderr(f"wrote {path}\n")


def _priced_rows(priced: PricedPairs, base: int) -> list[list[Any]]:
    pairs, penalties = (priced.pairs + base).tolist(), priced.penalties.tolist()
    return [[i, j, penalty] for (i, j), penalty in zip(pairs, penalties, strict=True)]


def _document(found: Diagnosis, locations: _PairLocations) -> dict[str, Any]:
    """Return the JSON document: the diagnosis with the locations of every pair."""
    document = found.to_json()
    for entry in document["broken_cannot_links"]:
        entry["cannot_link_at"] = locations.of("cannot", tuple(entry["cannot_link"]))
        entry["must_links_at"] = [
            locations.of("must", step) for step in pairwise(entry["must_link_path"])
        ]
    for entry in [*document["clashes"], document["remove"]]:
        for kind in ("must", "cannot"):
            named = [tuple(pair) for pair in entry[f"{kind}_link"]]
            entry[f"{kind}_links_at"] = [locations.of(kind, pair) for pair in named]
    return {**document, "points_counted_from": 0}


def _describe(found: Diagnosis, locations: _PairLocations, base: int, max_shown: int | None) -> str:
    """Format the diagnosis for a terminal, at most ``max_shown`` conflicts of each kind."""

    def pair_line(kind: str, pair: Pair, indent: str) -> str:
        where = "; ".join(locations.of(kind, pair))
        return f"{indent}{kind}-link ({pair[0] + base}, {pair[1] + base})  {where}"

    if found.feasible:
        return f"no conflict: the pairs can all hold with K = {found.n_clusters}\n"
    lines = []
    if found.broken:
        lines.append(f"{count(len(found.broken), 'cannot-link')} broken by must-links:")
    for broken in found.broken[:max_shown]:
        lines.append(pair_line("cannot", broken.pair, "  "))
        lines += [pair_line("must", step, "    ") for step in pairwise(broken.path)]
    lines += _omitted(len(found.broken), max_shown)
    if found.clashes:
        lines.append(
            f"{count(len(found.clashes), 'set')} of pairs that cannot hold with "
            f"K = {found.n_clusters}, each by itself:"
        )
    for clash in found.clashes[:max_shown]:
        lines.append(f"  {clash.kind}")
        lines += [pair_line("cannot", pair, "    ") for pair in clash.cannot_link]
        lines += [pair_line("must", pair, "    ") for pair in clash.must_link]
    lines += _omitted(len(found.clashes), max_shown)
    if not found.decided:
        lines.append("it could not be decided whether the pairs can hold: too many are entangled")
    proven = "no smaller set will do" if found.smallest else f"at least {found.least} have to go"
    lines.append(f"remove {count(found.size, 'pair')} and no conflict is left ({proven}):")
    lines += [pair_line("must", pair, "  ") for pair in found.remove_must]
    lines += [pair_line("cannot", pair, "  ") for pair in found.remove_cannot]
    lines.append("or keep all pairs, and let each be violated at a price: --soft F")
    return "\n".join(lines) + "\n"


def _omitted(number: int, max_shown: int | None) -> list[str]:
    return (
        []
        if max_shown is None or number <= max_shown
        else [f"  and {number - max_shown:,} more: --all"]
    )
