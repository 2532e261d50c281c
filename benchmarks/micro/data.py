"""Files of real data: what is there, what is missing, downloads, and the page that lists them."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from benchmarks.datasets.files import COLLECTIONS, DOWNLOADS, compare, download, known_files
from benchmarks.datasets.published import data_dir
from benchmarks.pages import show, write_page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "benchmarks" / "data.md"

INTRODUCTION = """# Data for the benchmarks

Written by `python -m benchmarks data --page`. Benchmarks on real data read them from `--data-dir` \
(or the variable `CERTIKMEANS_DATA_DIR`, or `../shared/data`). The files are not part of the \
repository. Without a file, its rows are left out. Iris comes with scikit-learn: without the file \
of its published pairs, other pairs are drawn, and the row is titled `(substitute pairs)`.

```
python -m benchmarks data --check DIR        # what is there, what is missing, what differs
python -m benchmarks data --download DIR     # fetches the files marked `download` below
```

The others have to be fetched from their source by hand and brought into the layout below. A \
checksum is SHA-256 of the values (of `X` as float64, or of the lines of a text), so a file that \
was converted again compares equal.
"""


def add_options(command: argparse.ArgumentParser) -> None:
    """Options of this command alone."""
    command.add_argument("--check", metavar="DIR", type=Path, help="compare a directory")
    command.add_argument("--download", metavar="DIR", type=Path, help="fetch what can be fetched")
    command.add_argument("--page", action="store_true", help="write docs/benchmarks/data.md")


def main(options: argparse.Namespace) -> None:
    """Check, download, or write the page; by default check the default directory."""
    if options.page:
        print(f"wrote {write_page(PAGE, _page())}")
    elif options.download is not None:
        _download(options.download)
    else:
        directory = options.check or data_dir(options.data_dir)
        if directory is None or not directory.is_dir():
            print("no directory of data: name one with --check DIR")
        else:
            _check(directory)


def _check(directory: Path) -> None:
    states = compare(directory, known_files())
    for one in states:
        if one.state != "ok":
            print(f"{one.state:8} {one.file.path}")
    counts = Counter(one.state for one in states)
    print(", ".join(f"{counts[state]} {state}" for state in ("ok", "missing", "differs")))


def _download(directory: Path) -> None:
    failed = False
    for one in compare(directory, known_files()):
        if one.state == "ok":
            continue
        state = download(one.file, directory)
        failed |= state != "ok"
        print(f"{one.file.path}: {state}")
    if failed:
        sys.exit(1)


def _page() -> list[str]:
    files = known_files()
    parts = [INTRODUCTION]
    for name, collection in COLLECTIONS.items():
        members = [one for one in files if one.collection == name]
        if not members:
            continue
        parts.append(
            f"## {name}\n\nSource: {collection.source}. Licence: {collection.licence}. "
            f"Layout: {collection.layout}.\n"
        )
        rows = [
            [
                f"`{one.path}`", one.shape, "download" if one.path in DOWNLOADS else "by hand",
                f"`{one.checksum[:16]}`",
            ]
            for one in members
        ]  # fmt: skip
        parts.append(show(["file", "n x d", "how", "SHA-256 (first 16 digits)"], rows) + "\n")
    return parts
