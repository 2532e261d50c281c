"""Modules that the fork server loads: what most commands and examples need."""

from __future__ import annotations

import contextlib

import scipy.optimize
import scipy.sparse  # noqa: F401

import certikmeans.certificate
import certikmeans.cli.inputs
import certikmeans.cli.run
import certikmeans.estimator
import certikmeans.solver.run  # noqa: F401

with contextlib.suppress(ImportError):
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot  # noqa: F401
