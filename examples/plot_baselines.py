"""
Comparing with COP-k-means and BLPKM-CC
=======================================

Published methods have the same interface, so a comparison is a loop. They return a labelling or
fail; the lower bound of certikmeans shows how far each of them is from the optimum.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from certikmeans import ConstrainedKMeans
from certikmeans.baselines import BLPKMCC, COPKMeans, PCKMeans
from certikmeans.generate import random_pairs

points, species = load_iris(return_X_y=True)
must, cannot = random_pairs(species, 50, 50, seed=0)
pairs = {"must_link": must, "cannot_link": cannot}

# %%
# The reference: the best labelling and its lower bound.
ours = ConstrainedKMeans(n_clusters=3, gap=1e-3, random_state=0).fit(points, **pairs)
print(f"certikmeans: {ours.inertia_:.3f}, {ours.status_}, not below {ours.lower_bound_:.3f}")

# %%
# Twenty seeds for each method. COP-k-means visits the points once, in the given order, and fails
# where no cluster is left for a point. PCKMeans may violate pairs, so its costs can be lower than
# those of feasible labellings.
methods = {
    "COP-k-means": lambda seed: COPKMeans(3, random_state=seed),
    "COP-k-means, 20 orders": lambda seed: COPKMeans(3, n_init=20, shuffle=True, random_state=seed),
    "BLPKM-CC": lambda seed: BLPKMCC(3, assignment="exact", random_state=seed),
    "PCKMeans": lambda seed: PCKMeans(3, random_state=seed),
}
excess = {}
for name, make in methods.items():
    fitted = [make(seed).fit(points, **pairs) for seed in range(20)]
    respected = [one.inertia_ / ours.inertia_ - 1 for one in fitted if one.feasible_]
    excess[name] = 100 * np.array(respected)
    broken = sum(np.isfinite(one.inertia_) for one in fitted) - len(respected)
    failed = len(fitted) - len(respected) - broken
    print(f"{name}: {len(respected)} respect all pairs, {broken} break some, {failed} fail")

# %%
# Excess cost of the feasible labellings.
fig, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
for row, values in enumerate(excess.values()):
    jitter = np.linspace(-0.15, 0.15, len(values)) if len(values) else []
    ax.plot(values, row + np.asarray(jitter), "o", alpha=0.6)
ax.axvline(0.0, color="black", linewidth=1)
ax.set_yticks(range(len(excess)), excess)
ax.set(xlabel="percent above certikmeans", title="20 seeds each; dots respect every pair")
plt.show()
