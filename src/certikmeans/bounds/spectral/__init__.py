"""Bounds from a few eigenvalues: at any number of groups, without an n x n matrix."""

from certikmeans.bounds.spectral.ascent import ascend
from certikmeans.bounds.spectral.bound import SpectralBound
from certikmeans.bounds.spectral.closed_form import SpectralProof, closed_form
from certikmeans.bounds.spectral.dual_bound import eigenvalue_bound, safe_value
from certikmeans.bounds.spectral.gram import SpectralMultipliers

__all__ = [
    "SpectralBound",
    "SpectralMultipliers",
    "SpectralProof",
    "ascend",
    "closed_form",
    "eigenvalue_bound",
    "safe_value",
]
