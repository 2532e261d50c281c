"""
Pairs from partial labels
=========================

Often there are no pairs, but the class of some samples is known. Partial labels become pairs: equal
labels must-link, different labels cannot-link, and other samples are unconstrained.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from certikmeans import ConstrainedKMeans, Constraints

points, species = load_iris(return_X_y=True)

# %%
# Suppose that some species are known. -1 means unknown; for labels that are text, so do empty text
# and None.
rng = np.random.default_rng(0)


def some_labels(count):
    """Labels of which ``count`` are known."""
    labels = np.full(len(points), -1)
    seen = rng.choice(len(points), size=count, replace=False)
    labels[seen] = species[seen]
    return labels


labels = some_labels(90)
free = ConstrainedKMeans(n_clusters=3, random_state=0).fit(points)
model = ConstrainedKMeans(n_clusters=3, random_state=0).fit(points, partial_labels=labels)
for name, fitted in (("no labels", free), ("90 labels", model)):
    print(f"{name}: cost {fitted.inertia_:.2f}, not below {fitted.lower_bound_:.2f}")

# %%
# Labels as pairs: a chain per class, and a cannot-link per pair of classes. That is enough, since
# must-links extend a cannot-link to all members.
print(Constraints.from_partial_labels(labels))

# %%
# Labels, groups and pairs can be combined: here two flowers must share a cluster in addition.
groups = np.full(len(points), -1)
groups[np.flatnonzero(labels < 0)[:2]] = 1
both = ConstrainedKMeans(n_clusters=3, random_state=0)
both.fit(points, partial_labels=labels, groups=groups)
assert len(set(both.labels_[groups == 1])) == 1

# %%
# How much do labels help for the flowers without one? Little, here: labels constrain their own
# flowers, and the others still minimise the cost. Six draws each; no proof is needed for this, so
# the cheapest bound is enough, without a tree.
warnings.simplefilter("ignore", ConvergenceWarning)
for count in (0, 45, 90):
    values = []
    for _ in range(6):
        drawn = some_labels(count)
        quick = ConstrainedKMeans(n_clusters=3, bound="sample", node_limit=1, random_state=0)
        quick.fit(points, partial_labels=drawn)
        others = drawn < 0
        values.append(adjusted_rand_score(species[others], quick.labels_[others]))
    print(f"{count:2d} labels: agreement of the other flowers {np.mean(values):.2f}")

# %%
# Flowers with a known species have a ring.
fig, panels = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained", sharey=True)
for ax, fitted, known in zip(panels, (free, model), (labels < -1, labels >= 0), strict=True):
    ax.scatter(points[:, 2], points[:, 3], c=fitted.labels_, s=12)
    ax.scatter(points[known, 2], points[known, 3], s=40, facecolors="none", edgecolors="0.3")
    ax.set(title=f"{known.sum()} labels", xlabel="petal length (cm)")
panels[0].set_ylabel("petal width (cm)")
plt.show()
