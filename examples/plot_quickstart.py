"""
Clustering with pairs
=====================

Twenty known pairs of flowers, some of the same species and some of different ones, are enough
to move the border between two species of iris that overlap. The result comes with a lower
bound on the cost of every labelling that respects the pairs.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

from certikmeans import ConstrainedKMeans

points, species = load_iris(return_X_y=True)

# %%
# Draw the pairs: equal species must be together, different species must be apart.
rng = np.random.default_rng(0)
overlapping = np.flatnonzero(species > 0)
pairs = rng.choice(overlapping, size=(20, 2), replace=False)
same = species[pairs[:, 0]] == species[pairs[:, 1]]
must_link, cannot_link = pairs[same], pairs[~same]

# %%
# Fit. Without pairs this is the k-means problem of scikit-learn.
free = KMeans(n_clusters=3, n_init=10, random_state=0).fit(points)
model = ConstrainedKMeans(n_clusters=3, time_limit=10, random_state=0)
model.fit(points, must_link=must_link, cannot_link=cannot_link)

print(f"without pairs: cost {free.inertia_:.4f}")
print(f"with {len(pairs)} pairs: cost {model.inertia_:.4f}, not below {model.lower_bound_:.4f}")
print(f"status: {model.status_}. {model.status_.sentence}")
for name, labels in (("without", free.labels_), ("with", model.labels_)):
    print(f"agreement with the species {name} pairs: {adjusted_rand_score(species, labels):.2f}")

# %%
# The labels respect every pair. New flowers are not part of any pair, so `predict` uses the
# nearest center.
assert (model.labels_[must_link[:, 0]] == model.labels_[must_link[:, 1]]).all()
assert (model.labels_[cannot_link[:, 0]] != model.labels_[cannot_link[:, 1]]).all()
print("a new flower belongs to cluster", model.predict([[6.0, 2.8, 4.6, 1.5]])[0])

# %%
# Solid lines join pairs that must be together, dotted lines pairs that must be apart.
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.scatter(points[:, 2], points[:, 3], c=model.labels_, s=18)
for i, j in must_link:
    ax.plot(points[[i, j], 2], points[[i, j], 3], color="0.2", linewidth=0.8)
for i, j in cannot_link:
    ax.plot(points[[i, j], 2], points[[i, j], 3], color="tab:red", linewidth=0.8, linestyle=":")
ax.set(xlabel="petal length (cm)", ylabel="petal width (cm)", title="Iris in three clusters")
plt.show()
