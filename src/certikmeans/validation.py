"""The door of every scikit-learn estimator here: what they all check, in the same words."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array, check_random_state

from certikmeans.errors import InfeasibleError, InputError

if TYPE_CHECKING:  # It brings in numba, which `import certikmeans` must not pay for.
    from certikmeans.presolve.infeasible import InfeasibilityProof


def seed_from(random_state: Any) -> int:
    """An int as it is; otherwise drawn, as scikit-learn does for its own kernels.

    >>> seed_from(7)
    7
    """
    generator = check_random_state(random_state)
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    return int(generator.randint(np.iinfo(np.int32).max))


def check_enough_samples(n_clusters: Any, available: int, what: str = "n_samples") -> None:
    """Refuse more clusters than there are samples to fill them."""
    # Anything that is not a whole number is refused by `Problem`, which says more about it.
    if isinstance(n_clusters, numbers.Integral) and int(n_clusters) > available:
        raise InputError(
            f"n_clusters={n_clusters} is more than {what}={available}",
            hint=f"choose n_clusters from 1 to {available}",
        )


def finite_weights(sample_weight: Any, n_samples: int) -> NDArray[np.float64] | None:
    """Return finite float64 weights, a number repeated for every sample; None if none were given.

    Shape and range are left to the caller: estimators differ in what they take.
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        sample_weight = np.full(n_samples, float(sample_weight))
    weights: NDArray[np.float64] = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    return weights


def raise_infeasible(proof: InfeasibilityProof) -> NoReturn:
    """Raise `InfeasibleError` with the pairs to blame."""
    raise InfeasibleError(
        f"no labelling respects every pair: {proof.describe()}",
        proof=proof,
        hint="remove one of these pairs, or raise n_clusters if cannot-links are the cause",
    )
