"""``python -m benchmarks NAME``: run one benchmark, or ``smoke`` for a quick look at all."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from benchmarks import bounds, certificates, incumbents, lloyd, presolving, root, startup, tree
from benchmarks.paper import run as paper

BENCHMARKS: dict[str, tuple[str, Callable[[argparse.Namespace], None]]] = {
    "bounds": ("the three lower bounds side by side, written to docs/benchmarks", bounds.main),
    "certificates": ("size of certificates and time to check them", certificates.main),
    "incumbents": ("cost on the published instances against the best known", incumbents.main),
    "lloyd": ("one Lloyd step with exact assignment against scikit-learn's", lloyd.main),
    "paper": ("the paper's tables beside ours, written to docs/benchmarks", paper.main),
    "presolve": ("reading the problem and presolve at 1,500,000 points", presolving.main),
    "root": ("gap and time of the root bound, written to docs/benchmarks", root.main),
    "startup": ("time of --help and of the import", startup.main),
    "tree": ("what the root does not close, by bound and branching", tree.main),
}
OPTIONS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "bounds": bounds.add_arguments,
    "certificates": certificates.add_arguments,
    "paper": paper.add_arguments,
    "tree": tree.add_arguments,
    "root": root.add_arguments,
}


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="name", required=True)
    for name, (what, _) in BENCHMARKS.items():
        command = commands.add_parser(name, help=what)
        command.add_argument("--small", action="store_true", help="small sizes, to see it run")
        command.add_argument("--data-dir", default=None, help="where the real data sets are")
        command.add_argument("--seed", type=int, default=0)
        if name in OPTIONS:
            OPTIONS[name](command)
    commands.add_parser("smoke", help="every benchmark at small size")
    arguments = parser.parse_args()
    if arguments.name == "smoke":
        for name, (what, run) in BENCHMARKS.items():
            print(f"\n== {name}: {what}")
            run(argparse.Namespace(small=True, data_dir=None, seed=0))
    else:
        BENCHMARKS[arguments.name][1](arguments)


if __name__ == "__main__":
    main()
