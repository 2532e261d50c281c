"""
Choosing the number of clusters
===============================

The elbow of a cost curve is only as good as the costs in it: a poor local optimum causes a kink of
its own. Here every cost comes with a lower bound, so that the curve of the optimal costs is known
to lie between the two lines.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from certikmeans import elbow

points, species = load_iris(return_X_y=True)

# %%
# For every tenth flower the species is known: equal species belong together, different ones
# apart. So at least three clusters are needed, and the elbow shows whether they are enough.
known = np.where(np.arange(len(points)) % 10 == 0, species, -1)
k_values = range(3, 9)
free = elbow(points, k_values, gap=0.01)
taught = elbow(points, k_values, gap=0.01, partial_labels=known)

for name, found in (("without labels", free), ("with some labels", taught)):
    print(name)
    for k, (lower, cost) in zip(found.k_values, found.intervals, strict=True):
        print(f"  K = {k}: the least cost lies between {lower:.3f} and {cost:.3f}")

# %%
# How much does another cluster save, at least and at most? Both follow from the intervals.
at_least = taught.lower_bound[:-1] - taught.inertia[1:]
at_most = taught.inertia[:-1] - taught.lower_bound[1:]
for k, low, high in zip(taught.k_values[1:], at_least, at_most, strict=True):
    print(f"cluster number {k} saves between {max(low, 0.0):.2f} and {high:.2f}")

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained", sharey=True)
free.plot(left).set_title("without labels")
taught.plot(right).set_title("with the species of every tenth flower")
plt.show()
