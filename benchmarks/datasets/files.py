"""Files of real data: where they come from, their layout, checksums, and downloads.

The list ``files.csv`` beside this module has one line per file. A checksum is that of the values,
not of the bytes: of the array ``X`` of an ``.npz`` file as little-endian float64, and of the lines
of a text file without blanks at their ends. So a file that was converted again compares equal.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.request import urlopen

import numpy as np
from numpy.typing import NDArray

LIST = Path(__file__).with_name("files.csv")
TIMEOUT = 60.0  # seconds until a server has to answer
UCI = "https://archive.ics.uci.edu/static/public"
TSPLIB = "http://comopt.ifi.uni-heidelberg.de/software/TSPLIB95/tsp"


@dataclass(frozen=True)
class DataFile:
    """One file of the data directory."""

    path: str
    checksum: str
    shape: str  # rows x columns; empty for pairs
    collection: str


@dataclass(frozen=True)
class Collection:
    """Files of one source."""

    name: str
    source: str
    licence: str
    layout: str


COLLECTIONS = {
    one.name: one
    for one in (
        Collection(
            "uci", "https://archive.ics.uci.edu", "CC BY 4.0",
            "`.npz` with `X` (rows as given) and `y` (class), where there is one",
        ),
        Collection(
            "hemi", "repository of the paper (Hua et al. 2021)", "not stated",
            "`.npz` with `X` and `y`",
        ),
        Collection(
            "tsplib", "TSPLIB", "free for research",
            "first line `n d`, then rows; `pr2392.npz` has `X`",
        ),
        Collection(
            "pc-sos-sdp", "https://github.com/antoniosudoso/pc-sos-sdp", "see there",
            "`instances/SET/data.txt` (first line `n d k`), pairs `ML i j` / `CL i j`, and "
            "`best_known.csv`",
        ),
        Collection(
            "highdim", "UCI, MNIST, AVOC (arXiv 2502.08397)", "see there",
            "`.npz` with `X` (standardised; pixels / 255), `k` and `y`",
        ),
        Collection(
            "s-mdeclust", "https://github.com/pierlumanzu/s_mdeclust", "see there",
            "`NAME_data.csv` with a column `class`, `NAME_constraints_N.json`",
        ),
        Collection(
            "pccc", "PCCC (INFORMS Journal on Computing 2023.0419)", "MIT",
            "`NAME_data.csv` with a column `class`, `NAME_constraints_SIZE.json` with `ml`, `cl`, "
            "or `sml`, `scl` and confidences",
        ),
        Collection(
            "balanced", "SO (Martin-Santamaria et al. 2022), LIMA-VNS (Costa et al. 2017)",
            "see there", "first line `n,d,k`, then rows; `best_known.csv`",
        ),
    )
}  # fmt: skip


def known_files() -> list[DataFile]:
    """Every file of the list."""
    with open(LIST, newline="", encoding="utf-8") as table:
        return [DataFile(**row) for row in csv.DictReader(table)]


def checksum(path: Path) -> str:
    """SHA-256 of the values of a file."""
    digest = hashlib.sha256()
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            points = np.ascontiguousarray(arrays["X"], dtype="<f8")
        digest.update(str(points.shape).encode())
        digest.update(points.data)
        return digest.hexdigest()
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                digest.update(line.rstrip().encode() + b"\n")
    return digest.hexdigest()


@dataclass(frozen=True)
class FileState:
    """Whether a file is there."""

    file: DataFile
    state: str  # "ok", "missing", "differs"


def compare(directory: Path, files: Iterable[DataFile]) -> list[FileState]:
    """Compare a directory with the list."""
    found = []
    for one in files:
        path = directory / one.path
        if not path.is_file():
            found.append(FileState(one, "missing"))
        else:
            same = checksum(path) == one.checksum
            found.append(FileState(one, "ok" if same else "differs"))
    return found


# Downloads: an address, and the function that makes the file of its content.

Converter = Callable[[bytes, Path], None]


def _zipped_table(content: bytes, path: Path, *, member: str, delimiter: str | None) -> None:
    """Table of numbers in an archive; the last column is the class."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open(member) as file:
        table = np.loadtxt(io.TextIOWrapper(file, encoding="utf-8"), delimiter=delimiter)
    np.savez_compressed(path, X=table[:, :-1], y=table[:, -1].astype(np.uint8))


def _tsplib_points(content: bytes) -> NDArray[np.float64]:
    """Coordinates of a TSPLIB file, which may be compressed."""
    text = (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode()
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip().endswith("COORD_SECTION"))
    rows = []
    for line in lines[start + 1 :]:
        fields = line.split()
        if len(fields) != 3:
            break
        rows.append([float(value) for value in fields[1:]])
    return np.array(rows)


def _tsplib_text(content: bytes, path: Path) -> None:
    points = _tsplib_points(content)
    lines = [f"{len(points)} 2", *(" ".join(f"{value:g}" for value in row) for row in points)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _tsplib_array(content: bytes, path: Path) -> None:
    np.savez_compressed(path, X=_tsplib_points(content))


DOWNLOADS: dict[str, tuple[str, Converter]] = {
    "seeds.npz": (
        f"{UCI}/236/seeds.zip",
        partial(_zipped_table, member="seeds_dataset.txt", delimiter=None),
    ),
    "htru2.npz": (
        f"{UCI}/372/htru2.zip", partial(_zipped_table, member="HTRU_2.csv", delimiter=","),
    ),
    "skin.npz": (
        f"{UCI}/229/skin+segmentation.zip",
        partial(_zipped_table, member="Skin_NonSkin.txt", delimiter=None),
    ),
    "pr2392.npz": (f"{TSPLIB}/pr2392.tsp.gz", _tsplib_array),
    **{
        f"plane/{name}.txt": (f"{TSPLIB}/{name}.tsp.gz", _tsplib_text)
        for name in ("pr299", "gr666", "u1060", "u2152", "fl3795")
    },
}  # fmt: skip


def download(file: DataFile, directory: Path, address: str | None = None) -> str:
    """Fetch and convert one file; returns "ok", "differs" or why it is not there."""
    if file.path not in DOWNLOADS:
        return f"by hand, from {COLLECTIONS[file.collection].source}"
    given, convert = DOWNLOADS[file.path]
    path = directory / file.path
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with urlopen(given if address is None else address, timeout=TIMEOUT) as answer:
            content = answer.read()
        convert(content, path)
    except (OSError, ValueError, KeyError, StopIteration, zipfile.BadZipFile) as error:
        return f"failed: {type(error).__name__}: {error}"
    return "ok" if checksum(path) == file.checksum else "differs"
