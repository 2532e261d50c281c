"""Reader for the UCI "3D Road Network" file, which a user has to fetch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from certikmeans import InputError

FILE_NAME = "3D_spatial_network.txt"
_COLUMNS = 4  # road number, longitude, latitude, altitude


def read_spnet3d(path: Path) -> NDArray[np.float64]:
    """Longitude, latitude and altitude: the three features of the paper's SPNET3D.

    The road number in front of them is a name, not a feature.
    """
    try:
        table = np.loadtxt(path, delimiter=",", dtype=np.float64, ndmin=2)
    except ValueError as error:
        raise InputError(
            f"{path}: {error}",
            hint="expected lines of four numbers with commas between them, as UCI has it",
        ) from error
    if table.shape[1] != _COLUMNS:
        raise InputError(
            f"{path}: {table.shape[1]} columns instead of {_COLUMNS}",
            hint="road number, longitude, latitude, altitude",
        )
    return np.ascontiguousarray(table[:, 1:])
