"""
Pairs with mistakes
===================

Pairs collected from people contain mistakes, and mistakes cause contradictions: then no labelling
satisfies them all. `Constraints.conflicts` finds every contradiction and a smallest set of pairs to
remove.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from certikmeans import ConstrainedKMeans, Constraints, InfeasibleError
from certikmeans.generate import gaussian_clusters, random_pairs

points, truth = gaussian_clusters(200, n_clusters=3, spread=3.0, seed=4)
must, cannot = random_pairs(truth, 300, 300, seed=4)

# %%
# Swap the kind of 2 % of the pairs, then try.
wrong_must, wrong_cannot = must[:6], cannot[:6]
noisy = Constraints.from_pairs(
    must_link=np.concatenate([must[6:], wrong_cannot]),
    cannot_link=np.concatenate([cannot[6:], wrong_must]),
    n_points=len(points),
)
model = ConstrainedKMeans(n_clusters=3, random_state=0)
try:
    model.fit(points, constraints=noisy)
except InfeasibleError as error:
    print(error.proof.describe())

# %%
# The error shows one contradiction. These are all of them, and the pairs to remove.
found = noisy.conflicts(n_clusters=3)
print(f"{len(found.broken)} cannot-links are broken by must-links")
print(f"remove {found.size} pairs; at least {found.least} have to go")

# %%
# Were the removed pairs the wrong ones?
removed = {*found.remove_must, *found.remove_cannot}
wrong = {tuple(sorted(pair)) for pair in np.concatenate([wrong_must, wrong_cannot]).tolist()}
print(f"{len(removed & wrong)} of the {len(removed)} removed pairs are wrong ones")

clean = found.cleaned(noisy)
model.fit(points, constraints=clean)
print(f"without them: {model.status_}, agreement {adjusted_rand_score(truth, model.labels_):.3f}")

# %%
# Removed pairs: must-links as solid lines, cannot-links as dotted ones.
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.scatter(*points.T, c=model.labels_, s=14)
for pairs, style in ((found.remove_must, "-"), (found.remove_cannot, ":")):
    for i, j in pairs:
        ax.plot(*points[[i, j]].T, color="tab:red", linestyle=style)
ax.set(title=f"{found.size} pairs that had to go")
plt.show()
