"""
Delivery districts with a capacity
==================================

Customers are to be divided among vans. A district should be compact, and its parcels have to fit
into one van: clusters with a limit on the sum of a demand. Without the limit the centre of the town
gets a district that no van can serve.
"""

import matplotlib.pyplot as plt
import numpy as np

from certikmeans import ConstrainedKMeans

rng = np.random.default_rng(4)
town = rng.normal(scale=1.2, size=(90, 2))
villages = [rng.normal(loc=at, scale=0.6, size=(30, 2)) for at in ((5, 1), (-4, 4), (1, -5))]
places = np.vstack([town, *villages])
parcels = rng.integers(1, 6, size=len(places))
VANS, CAPACITY = 4, 150
print(f"{len(places)} customers, {parcels.sum()} parcels, {VANS} vans for {CAPACITY} parcels each")

# %%
# ``demand`` counts parcels instead of customers, and ``size_max`` is the capacity. The demand has
# no influence on the distances; ``sample_weight`` would have.
free = ConstrainedKMeans(VANS, random_state=0).fit(places)
model = ConstrainedKMeans(VANS, size_max=CAPACITY, gap=0.01, random_state=0)
model.fit(places, demand=parcels)
for name, fitted in (("no limit", free), ("capacity", model)):
    load = np.bincount(fitted.labels_, parcels, VANS).astype(int)
    print(f"{name}: loads {load.tolist()}, sum of squares {fitted.inertia_:.1f}")

# %%
# The limit has a price, and the lower bound says that no other division within the capacity is more
# than 1 % cheaper.
print(model.lower_bound_ >= 0.99 * model.inertia_)
assert np.bincount(model.labels_, parcels).max() <= CAPACITY

# %%
# Two customers of one family want the same driver, and two others must not meet: pairs and
# capacities go together.
family, rivals = (0, 95), (10, 11)
both = ConstrainedKMeans(VANS, size_max=CAPACITY, gap=0.05, random_state=0)
both.fit(places, demand=parcels, must_link=[family], cannot_link=[rivals])
assert both.labels_[0] == both.labels_[95]
assert both.labels_[10] != both.labels_[11]

# %%
# A marker is a customer, as large as the number of parcels.
fig, panels = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained", sharey=True)
for ax, fitted, title in zip(panels, (free, model), ("no limit", "capacity"), strict=True):
    ax.scatter(*places.T, c=fitted.labels_, s=8 * parcels)
    ax.scatter(*fitted.cluster_centers_.T, marker="+", s=90, color="0.2")
    load = np.bincount(fitted.labels_, parcels, VANS).astype(int)
    ax.set(title=f"{title}: {', '.join(map(str, load))} parcels")
plt.show()
