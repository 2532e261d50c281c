"""``python -m benchmarks NAME``: run one benchmark, or ``smoke`` for all of them at small size."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
from collections.abc import Callable, Sequence

from benchmarks import studies
from benchmarks.micro import data, lloyd, noise, presolving
from benchmarks.studies.paper import run as paper
from benchmarks.study import Study


def _studies() -> dict[str, Study]:
    """Every module of `benchmarks.studies` that has one, and the paper's."""
    names = sorted(module.name for module in pkgutil.iter_modules(studies.__path__))
    modules = [importlib.import_module(f"benchmarks.studies.{name}") for name in names]
    found = [module.STUDY for module in (*modules, paper) if hasattr(module, "STUDY")]
    return {study.name: study for study in sorted(found, key=lambda study: study.name)}


STUDIES = _studies()
MICRO: dict[str, tuple[str, Callable[[argparse.Namespace], None]]] = {
    "data": ("files of real data: what is there, what is missing, downloads", data.main),
    "lloyd": ("one Lloyd step with exact assignment against scikit-learn's", lloyd.main),
    "noise": ("pairs of which 2 %% are wrong: how many have to go", noise.main),
    "presolve": ("reading the problem and presolve at 1,500,000 points", presolving.main),
}
BENCHMARKS = {
    **{name: (study.what, study.main) for name, study in STUDIES.items()},
    **MICRO,
}


def parser() -> argparse.ArgumentParser:
    """Every command with its options."""
    whole = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = whole.add_subparsers(dest="name", required=True)
    for name, (what, _) in sorted(BENCHMARKS.items()):
        command = commands.add_parser(name, help=what)
        command.add_argument("--small", action="store_true", help="small sizes, to see it run")
        command.add_argument("--data-dir", default=None, help="where the real data sets are")
        command.add_argument("--seed", type=int, default=0)
        if name in STUDIES:
            STUDIES[name].add_arguments(command)
        elif name == "data":
            data.add_options(command)
    commands.add_parser("smoke", help="every benchmark at small size")
    return whole


def main(given: Sequence[str] | None = None) -> None:
    """Parse and run."""
    arguments = parser().parse_args(given)
    if arguments.name != "smoke":
        BENCHMARKS[arguments.name][1](arguments)
        return
    for name, (what, run) in sorted(BENCHMARKS.items()):
        print(f"\n== {name}: {what}")
        run(parser().parse_args([name, "--small"]))


if __name__ == "__main__":
    main()
