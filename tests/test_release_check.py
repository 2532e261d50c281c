"""`make release-check` rejects archives with missing or surplus files."""

from __future__ import annotations

import io
import tarfile
import zipfile

import pytest
from tools import release_check

NEEDED = ["certikmeans/py.typed", "certikmeans/data/iris_pairs.txt"]
SOURCES = ["README.md", "tests/solver/test_solve.py", "mkdocs.yml", "LICENSE"]


def packed(folder, more_in_wheel=(), more_in_archive=(), without=()):
    """A wheel and a source archive with files of one letter."""
    wheel, archive = folder / "a-1.0-py3-none-any.whl", folder / "a-1.0.tar.gz"
    with zipfile.ZipFile(wheel, "w") as target:
        for name in [*NEEDED, "a-1.0.dist-info/METADATA", *more_in_wheel]:
            if name not in without:
                target.writestr(name, "x")
    with tarfile.open(archive, "w:gz") as target:
        for name in [*(f"src/{one}" for one in NEEDED), *SOURCES, *more_in_archive]:
            if name not in without:
                entry = tarfile.TarInfo(f"a-1.0/{name}")
                entry.size = 1
                target.addfile(entry, io.BytesIO(b"x"))
    return wheel, archive


def test_valid_archives_pass(tmp_path, capsys):
    release_check.check_contents(*packed(tmp_path))
    assert ": 3 files" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"more_in_wheel": ["certikmeans/__pycache__/a.pyc"]}, "do not belong there"),
        ({"more_in_wheel": ["certikmeans/kernels/cost.nbi"]}, "do not belong there"),
        ({"more_in_archive": ["docs/benchmarks/paper.jsonl"]}, "do not belong there"),
        ({"more_in_archive": [".venv/bin/python"]}, "do not belong there"),
        ({"more_in_wheel": ["tests/solver/test_solve.py"]}, "more than the package"),
        ({"without": ["certikmeans/py.typed"]}, "lacks"),
        ({"without": ["LICENSE"]}, "lacks"),
    ],
)
def test_invalid_archives_are_rejected(tmp_path, change, complaint):
    with pytest.raises(SystemExit, match=complaint):
        release_check.check_contents(*packed(tmp_path, **change))


@pytest.mark.parametrize(
    ("page", "complaint"),
    [
        ("[a](docs/b.md)", "do not work on the package page"),
        ("[a](https://x.org/y/blob/v1.0/docs/gone.md)", "not there"),
        ("nothing", "do not work"),
    ],
)
def test_broken_package_page_is_rejected(tmp_path, page, complaint):
    wheel = tmp_path / "a-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as target:
        target.writestr("a-1.0.dist-info/METADATA", page)
    with pytest.raises(SystemExit, match=complaint):
        release_check.check_package_page(wheel, "1.0")


def test_valid_package_page_passes(tmp_path, capsys):
    wheel = tmp_path / "a-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as target:
        text = "[a](https://x.org/y/blob/v1.0/README.md#cite) [b](https://x.org)"
        target.writestr("a-1.0.dist-info/METADATA", text)
    release_check.check_package_page(wheel, "1.0")
    assert "2 links, 1 of them" in capsys.readouterr().out


def test_unknown_python():
    assert release_check.python_named("2.99") is None
