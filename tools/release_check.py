"""``python -m tools.release_check``: check that the files in dist/ install and run.

Checks the contents of the wheel and the source archive (``--contents``: nothing else, as in
`make dist`), then installs each into a fresh environment outside the checkout, the wheel with every
installed Python from 3.11 to 3.15, the archive with one, and runs the demo. `make release-check`
builds dist/ first.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
PYTHONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
FORBIDDEN_CONTENT = re.compile(
    r"__pycache__|\.py[cod]$|\.nb[ci]$|\.jsonl$|/\.(git|venv|hypothesis|mypy_cache|ruff_cache)/"
)
MAX_BYTES = {"wheel": 1_500_000, "source archive": 5_000_000}

# What is run in each environment, from an empty directory.
SMOKE = """\
import certikmeans
from importlib.metadata import version
from pathlib import Path

assert version("certikmeans") == certikmeans.__version__ == "{version}", certikmeans.__version__
assert Path("{root}") not in Path(certikmeans.__file__).parents, certikmeans.__file__
model = certikmeans.ConstrainedKMeans(n_clusters=2, random_state=0, keep_proof=True)
rows = [[0.0], [1.0], [9.0], [10.0]]
model.fit(rows, must_link=[(1, 2)])
assert model.labels_.tolist() == [0, 1, 1, 1] and model.status_ == "optimal"
model.write_certificate("smoke.certificate")
content = Path("smoke.certificate").read_bytes()
assert certikmeans.check_certificate(rows, content, n_clusters=2).accepted
"""


def fail(message: str) -> None:
    """Exit with a message."""
    raise SystemExit(f"release-check: {message}")


def python_named(version: str) -> Path | None:
    """Find an interpreter of this version: on the path, or installed by pyenv or uv."""
    names = [shutil.which(f"python{version}")]
    for tool, arguments, where in (("pyenv", ["root"], "versions"), ("uv", ["python", "dir"], ".")):
        found = shutil.which(tool)
        if found:
            shown = subprocess.run([found, *arguments], capture_output=True, text=True)
            place = Path(shown.stdout.strip()) / where
            names += sorted(map(str, place.glob(f"*{version}*/bin/python{version}")))
    for name in filter(None, names):
        shown = subprocess.run([name, "--version"], capture_output=True, text=True)
        if shown.returncode == 0 and shown.stdout.startswith(f"Python {version}"):
            return Path(name)
    return None


def check_contents(wheel: Path, archive: Path) -> None:
    """Check that required files are in the archives, and no others."""
    with zipfile.ZipFile(wheel) as packed, tarfile.open(archive) as sources:
        inside = {"wheel": packed.namelist(), "source archive": sources.getnames()}
    for kind, path in (("wheel", wheel), ("source archive", archive)):
        stray = [name for name in inside[kind] if FORBIDDEN_CONTENT.search(name)]
        if stray:
            fail(f"the {kind} has {len(stray)} files that do not belong there: {stray[:3]}")
        if path.stat().st_size > MAX_BYTES[kind]:
            fail(f"the {kind} has {path.stat().st_size:,} bytes")
        needed = ["certikmeans/py.typed", "certikmeans/data/iris_pairs.txt"]
        if kind == "source archive":
            needed += ["/README.md", "/tests/solver/test_solve.py", "/mkdocs.yml", "/LICENSE"]
        missing = [name for name in needed if not any(one.endswith(name) for one in inside[kind])]
        if missing:
            fail(f"the {kind} lacks {missing}")
        print(f"{path.name}: {len(inside[kind])} files, {path.stat().st_size:,} bytes")
    others = {name.split("/")[0] for name in inside["wheel"]} - {"certikmeans"}
    if any(not name.endswith(".dist-info") for name in others):
        fail(f"the wheel has more than the package: {others}")


def check_package_page(wheel: Path, version: str) -> None:
    """Check that links of the long description are absolute and that files behind ours exist."""
    content = zipfile.ZipFile(wheel)
    name = next(one for one in content.namelist() if one.endswith(".dist-info/METADATA"))
    page = content.read(name).decode()
    links = re.findall(r"\]\(([^)\s]+)\)", page)
    relative = [one for one in links if not one.startswith(("https://", "#"))]
    if relative or not links:
        fail(f"links that do not work on the package page: {relative}")
    ours = [
        found.group(1)
        for one in links
        if (found := re.search(rf"/(?:blob|raw)/v{re.escape(version)}/([^#]+)", one))
    ]
    missing = [one for one in ours if not (ROOT / one).exists()]
    if missing or not ours:
        fail(f"links to files that are not there: {missing}")
    print(f"package page: {len(links)} links, {len(ours)} of them to files of the sources")


def check_install(python: Path, what: Path, version: str) -> None:
    """Install into a fresh environment and run the demo from an empty directory."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        place, work = Path(folder) / "env", Path(folder) / "work"
        work.mkdir()
        subprocess.run([python, "-m", "venv", place], check=True)
        programs = place / ("Scripts" if os.name == "nt" else "bin")
        own = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "NUMBA"))}
        pip = [
            str(programs / "python"),
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
        ]
        subprocess.run([*pip, f"{what}[plot]"], check=True, env=own)
        installed = time.perf_counter()
        smoke = SMOKE.format(version=version, root=ROOT)
        subprocess.run([str(programs / "python"), "-c", smoke], check=True, cwd=work, env=own)
        demo = [str(programs / "certikmeans"), "demo", "--output-dir", "out"]
        subprocess.run(demo, check=True, cwd=work, env=own, capture_output=True)
        made = {path.name for path in (work / "out").iterdir()}
        if not made >= {"iris.json", "iris.png", "iris.certificate"}:
            fail(f"the demo wrote only {made}")
    ran = time.perf_counter()
    print(
        f"{python} and {what.name}: installed in {installed - began:.0f} s, "
        f"first fit and demo in {ran - installed:.0f} s",
        flush=True,
    )


def main() -> None:
    """Check the files, then install them with every Python found."""
    parser = argparse.ArgumentParser(prog="python -m tools.release_check", description=__doc__)
    parser.add_argument("--contents", action="store_true", help="check the files only")
    parser.add_argument("--python", choices=PYTHONS, help="install with this version only")
    arguments = parser.parse_args()
    wheels, archives = sorted(DIST.glob("*.whl")), sorted(DIST.glob("*.tar.gz"))
    if len(wheels) != 1 or len(archives) != 1:
        fail("dist/ must hold one wheel and one source archive: make dist")
    version = wheels[0].name.split("-")[1]
    check_contents(wheels[0], archives[0])
    check_package_page(wheels[0], version)
    if arguments.contents:
        return
    chosen = PYTHONS if arguments.python is None else (arguments.python,)
    found = {one: python_named(one) for one in chosen}
    interpreters = [path for path in found.values() if path is not None]
    for python in interpreters:
        check_install(python, wheels[0], version)
    check_install(interpreters[0] if interpreters else Path(sys.executable), archives[0], version)
    missing = [one for one, path in found.items() if path is None]
    print("passed" + (f"; not installed, so not tested: {', '.join(missing)}" if missing else ""))


if __name__ == "__main__":
    main()
