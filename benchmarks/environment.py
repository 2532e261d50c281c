"""Where a row was measured: versions, seed, cores, commit."""

from __future__ import annotations

import platform
import resource
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from certikmeans import __version__
from certikmeans.options import available_cores

_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "PySCIPOpt", "clarabel")
_ROOT = Path(__file__).resolve().parents[1]


def about(seed: int) -> dict[str, Any]:
    """Everything that a reader needs to judge or repeat a row; packages only if installed."""
    found: dict[str, Any] = {
        "seed": seed,
        "cores": available_cores(),
        "commit": commit(),
        "certikmeans": __version__,
        "python": platform.python_version(),
    }
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """Short hash, with a plus if the measured code differs from it."""
    changed = _git("status", "--porcelain", "--", "src", "benchmarks")
    return _git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments], capture_output=True, text=True, check=False, cwd=_ROOT
        )
    except OSError:
        return ""
    return done.stdout.strip()


def peak_gigabytes() -> float:
    """The most memory that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
