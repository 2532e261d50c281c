"""A guess at a hidden colouring: vertices of one colour have like neighbours.

Cannot-links that were drawn from a labelling leave a trace in the spectrum of their graph once
there are enough of them, about ``(K - 1)^2`` per point: the K - 1 smallest eigenvectors of the
Bethe Hessian ``(r^2 - 1) I - r A + D``, ``r = - sqrt(mean degree)`` (Saade, Krzakala and Zdeborova
2014, for clusters that repel each other). Vertices are clustered by their entries there. That is
rarely a proper colouring, but near enough for moves of single vertices to finish, where from any
other start they would not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from certikmeans.streams import generator

# Beyond this the eigenvectors take longer than the searches they help.
LARGEST = 50_000
_TRIES, _STEPS = 5, 30
_ACCURACY = 1e-2


def spectral_colours(
    indptr: NDArray[np.int64], neighbors: NDArray[np.int64], n_colours: int
) -> NDArray[np.int64] | None:
    """Return a colour for every vertex, few of them in a clash; None where there is no guess.

    Parameters
    ----------
    indptr, neighbors : ndarray
        The graph in compressed form.
    n_colours : int
        K, at least 2.
    """
    n = len(indptr) - 1
    if not 2 <= n_colours < n - 1 or n > LARGEST:
        return None
    from scipy.sparse import csr_array, diags_array
    from scipy.sparse.linalg import ArpackError, eigsh

    degrees = np.diff(indptr)
    root = -float(np.sqrt(degrees.mean()))
    links = csr_array((np.ones(len(neighbors)), neighbors, indptr), shape=(n, n))
    matrix = diags_array(degrees + (root * root - 1.0)) - root * links
    rng = generator(0, "presolve.colours")
    try:
        _, places = eigsh(
            matrix.tocsr(), n_colours - 1, which="SA", tol=_ACCURACY, v0=rng.normal(size=n)
        )
    except ArpackError:  # not converged: no guess
        return None
    tails = np.repeat(np.arange(n), degrees)
    guesses = [_clustered(places, n_colours, rng) for _ in range(_TRIES)]
    return min(guesses, key=lambda guess: np.count_nonzero(guess[tails] == guess[neighbors]))


def _clustered(
    places: NDArray[np.float64], n_clusters: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """A few steps of Lloyd from seeds that are drawn far apart."""
    squares = np.einsum("ij,ij->i", places, places)

    def away(centre: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.maximum(squares - 2.0 * places @ centre + centre @ centre, 0.0)

    centres = [places[rng.integers(len(places))]]
    nearest = away(centres[0])
    while len(centres) < n_clusters:
        shares = nearest / nearest.sum() if nearest.sum() > 0.0 else None
        centres.append(places[rng.choice(len(places), p=shares)])
        nearest = np.minimum(nearest, away(centres[-1]))
    means = np.stack(centres)
    labels = np.zeros(len(places), dtype=np.int64)
    for _ in range(_STEPS):
        before = labels
        labels = np.argmin(np.einsum("ij,ij->i", means, means) - 2.0 * places @ means.T, axis=1)
        if np.array_equal(labels, before):
            break
        for k in np.unique(labels):
            means[k] = places[labels == k].mean(axis=0)
    return labels.astype(np.int64)
