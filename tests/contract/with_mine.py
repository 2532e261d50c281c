"""The command line after the recipe "add a bound": a file, a line, a checker. Called by tests."""

from __future__ import annotations

import sys
from pathlib import Path

import certikmeans.bounds
from certikmeans.bounds.registry import BOUNDS, Entry

LINE = {"mine": Entry("mine:Mine", "copied from the template")}


def write_files(folder: Path) -> None:
    """Copy the template of bounds and the simplest checker under another name."""
    package = Path(certikmeans.bounds.__file__).parents[1]
    bound = (package / "bounds" / "_template.py").read_text()
    bound = bound.replace("class Template", "class Mine").replace('"template"', '"mine"')
    bound = bound.replace('Leaf("trivial")', "Leaf(self.name)")
    checker = (package / "certificate" / "leaves" / "trivial.py").read_text()
    checker = checker.replace('"trivial"', '"mine"').replace("CODE = 6", "CODE = 99")
    for kind, text in (("bounds", bound), ("leaves", checker)):
        (folder / kind).mkdir()
        (folder / kind / "mine.py").write_text(text)


def main() -> None:
    """Register what the folder (first argument) holds, then run with the others."""
    folder = Path(sys.argv.pop(1))
    certikmeans.bounds.__path__.append(str(folder / "bounds"))
    BOUNDS.update(LINE)

    from certikmeans.certificate import leaves  # its folder is read when it is imported

    leaves.__path__.append(str(folder / "leaves"))
    leaves.KINDS.update(leaves._found())
    leaves.CODES.update({kind.NAME: code for code, kind in leaves.KINDS.items()})

    from certikmeans.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
