"""Bounds from a few eigenvalues: at any number of groups, without an n x n matrix."""

from certikmeans.bounds.spectral.ascent import improved
from certikmeans.bounds.spectral.bound import SpectralBound
from certikmeans.bounds.spectral.closed_form import SpectralProof, closed_form
from certikmeans.bounds.spectral.evidence import SpectralEvidence
from certikmeans.bounds.spectral.floor import spectral_floor
from certikmeans.bounds.spectral.safe import safe_value

__all__ = [
    "SpectralBound",
    "SpectralEvidence",
    "SpectralProof",
    "closed_form",
    "improved",
    "safe_value",
    "spectral_floor",
]
