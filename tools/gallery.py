"""``python -m tools.gallery [NAME ...]``: run the examples and write their pages in docs/gallery.

An example is a script in parts, ``# %%`` between them: its docstring is the heading and the
introduction, comments at the top of a part are its text. Every part is shown with what it printed
and the picture it drew. Pages and pictures are committed, so that the site is built without
running anything; tests/test_gallery.py compares them with the examples.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from benchmarks.pages import pyplot, wrapped
from cycler import cycler
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from PIL import Image

from certikmeans.report.plot_data import COLORS

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
GALLERY = ROOT / "docs" / "gallery"
FEATURED = ("plot_quickstart", "plot_partial_labels", "plot_choosing_k")
THUMBNAILS = GALLERY / "thumbnails"
THUMBNAIL_WIDTH = 420  # pixels
MAX_PICTURE_BYTES = 100_000  # bytes
STYLE = {
    "axes.prop_cycle": cycler(color=COLORS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.25,
}


@dataclass(frozen=True)
class Block:
    """Text and the code below it; either may be empty."""

    text: str
    code: str


@dataclass(frozen=True)
class Example:
    """A script of the gallery, split into blocks."""

    name: str
    title: str
    introduction: str
    blocks: tuple[Block, ...]

    @property
    def first_sentence(self) -> str:
        """First sentence of the introduction."""
        paragraph = " ".join(self.introduction.split("\n\n")[0].split())
        return re.split(r"(?<=[.:]) ", paragraph)[0].rstrip(":.") + "."


def names() -> list[str]:
    """The examples, in the order of the gallery."""
    found = sorted(path.stem for path in EXAMPLES.glob("plot_*.py"))
    return [*FEATURED, *(name for name in found if name not in FEATURED)]


def read_example(path: Path) -> Example:
    """Split a script into its blocks."""
    source = path.read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(source)) or ""
    title, _, introduction = docstring.split("\n", 2)
    body = source.split('"""', 2)[2]
    blocks = tuple(_block(piece) for piece in re.split(r"^# %%.*$", body, flags=re.MULTILINE))
    return Example(path.stem, title, introduction.strip(), blocks)


def _block(piece: str) -> Block:
    """Separate the comments at the top from the code.

    >>> _block("\\n# One\\n# two.\\nx = 1\\n")
    Block(text='One\\ntwo.', code='x = 1')
    """
    lines = piece.strip("\n").split("\n")
    end = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    text = "\n".join(line.removeprefix("#").strip() for line in lines[:end])
    return Block(text, "\n".join(lines[end:]).strip("\n"))


def run_blocks(example: Example) -> tuple[list[str], list[int]]:
    """Run the blocks in one namespace; return what each printed, and which drew a picture."""
    plt = pyplot()
    plt.rcParams.update(STYLE)
    printed, drew = [], []
    namespace: dict[str, object] = {"__name__": "__main__"}
    for number, part in enumerate(example.blocks):
        said = io.StringIO()
        with redirect_stdout(said):
            exec(compile(part.code, f"{example.name}.py", "exec"), namespace)
        printed.append(said.getvalue().rstrip())
        if plt.get_fignums():
            drew.append(number)
            save_pictures(plt.gcf(), example.name)
            plt.close("all")
    return printed, drew


def save_pictures(figure: Figure, name: str) -> None:
    """Write a picture, and the inside of its last axes as a thumbnail.

    Clusters get the colours in which the package draws them.
    """
    for axes in figure.axes:
        for drawn in axes.collections:
            if drawn.get_array() is not None:
                drawn.set_cmap(ListedColormap(COLORS))
                drawn.set_clim(0, len(COLORS) - 1)
    figure.savefig(GALLERY / f"{name}.png", dpi=90)
    box = figure.axes[-1].get_window_extent().transformed(figure.dpi_scale_trans.inverted())
    THUMBNAILS.mkdir(exist_ok=True)
    path = THUMBNAILS / f"{name}.png"
    figure.savefig(path, dpi=THUMBNAIL_WIDTH / box.width, bbox_inches=box)
    for written in (GALLERY / f"{name}.png", path):
        reduce_colors(written)


def reduce_colors(path: Path) -> None:
    """Store a picture with a palette: a third of the size, no visible difference."""
    with Image.open(path) as picture:
        reduced = picture.convert("RGB").quantize(64)
    reduced.save(path, optimize=True)


def page(example: Example, printed: list[str], drew: list[int]) -> str:
    """Return the page of an example."""
    lines = [f"# {example.title}", "", example.introduction, ""]
    for number, part in enumerate(example.blocks):
        if part.text:
            lines += [part.text, ""]
        if part.code:
            lines += ["```python", part.code, "```", ""]
        if printed[number]:
            lines += ["```text", printed[number], "```", ""]
        if number in drew:
            lines += [f"![{example.title}]({example.name}.png)", ""]
    lines += [f"Written by `make gallery`; to run it: `python examples/{example.name}.py`.", ""]
    return wrapped("\n".join(lines))


def index(examples: list[Example]) -> str:
    """Return the index of the gallery."""
    lines = ["# Gallery", "", "Each page is a complete script that runs within seconds.", ""]
    lines += ['<div class="gallery" markdown>', ""]
    for one in examples:
        picture = f"[![{one.title}]({THUMBNAILS.name}/{one.name}.png)]({one.name}.md)"
        lines += [f"{picture}<br>**[{one.title}]({one.name}.md)**<br>{one.first_sentence}", ""]
    lines += ["</div>", ""]
    return wrapped("\n".join(lines))


def write_example(name: str) -> None:
    """Run one example in this process and write its page."""
    example = read_example(EXAMPLES / f"{name}.py")
    text = page(example, *run_blocks(example))
    (GALLERY / f"{name}.md").write_text(text, encoding="utf-8")
    size = (GALLERY / f"{name}.png").stat().st_size
    if size > MAX_PICTURE_BYTES:
        raise SystemExit(f"{name}.png has {size} bytes, more than {MAX_PICTURE_BYTES}")


def main() -> None:
    """Write the pages of the given examples, each in its own process, and the index."""
    parser = argparse.ArgumentParser(prog="python -m tools.gallery", description=__doc__)
    parser.add_argument("names", nargs="*", help="examples, without .py; by default all")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    GALLERY.mkdir(exist_ok=True)
    if arguments.here:
        write_example(*arguments.names)
        return
    for name in arguments.names or names():
        print(name, flush=True)
        subprocess.run([sys.executable, "-m", "tools.gallery", "--here", name], check=True)
    examples = [read_example(EXAMPLES / f"{name}.py") for name in names()]
    (GALLERY / "index.md").write_text(index(examples), encoding="utf-8")


if __name__ == "__main__":
    main()
