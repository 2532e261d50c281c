"""
Pairs from a noisy source
=========================

Records of firms from several files are to be linked: each has coordinates of an address, and for
some pairs of records a model of the names gives the probability that they are the same firm. Such
probabilities are wrong now and then, so they become soft pairs: a violated pair costs more, the
surer the model was.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score

from certikmeans import ConstrainedKMeans, Constraints, InfeasibleError

rng = np.random.default_rng(3)
n_firms, n_records, noise = 6, 150, 1.0
homes = rng.uniform(0.0, 6.0, size=(n_firms, 2))
firm = rng.integers(n_firms, size=n_records)
points = homes[firm] + rng.normal(scale=noise, size=(n_records, 2))

# %%
# The source: probabilities of a match for 250 pairs of records near each other. Most are right.
near = np.argsort(((points[:, None] - points) ** 2).sum(axis=2), axis=1)[:, 1:13]
first = rng.integers(n_records, size=250)
second = near[first, rng.integers(near.shape[1], size=250)]
same = firm[first] == firm[second]
evidence = np.where(same, 1.5, -1.5) + rng.normal(scale=1.5, size=250)
probability = 1.0 / (1.0 + np.exp(-evidence))
wrong = (probability > 0.5) != same
print(f"{wrong.mean():.0%} of the pairs point the wrong way")

# %%
# As hard pairs they contradict each other; without those that have to go they still mislead.
pairs = np.column_stack([first, second])
likely = probability > 0.5
hard = Constraints(pairs[likely], pairs[~likely], n_points=n_records)
model = ConstrainedKMeans(n_clusters=n_firms, random_state=0, time_limit=5.0)
try:
    model.fit(points, constraints=hard)
except InfeasibleError as error:
    print(f"hard pairs: {error.proof.describe()}")
model.fit(points, constraints=hard.conflicts(n_firms, time_limit=5.0).cleaned(hard))
print(f"hard, without conflicts: agreement {adjusted_rand_score(firm, model.labels_):.2f}")
model.fit(points)
print(f"no pairs: agreement {adjusted_rand_score(firm, model.labels_):.2f}")

# %%
# The penalty of a pair: if positions are normal with standard deviation ``noise`` and the
# probabilities are honest, the most probable labelling minimises the sum of squares plus
# ``2 noise^2`` times the log odds of every violated pair.
odds = 2.0 * noise**2 * np.abs(np.log(probability / (1.0 - probability)))
priced = np.column_stack([pairs, odds])
model.fit(points, soft_must_link=priced[likely], soft_cannot_link=priced[~likely])
result = model.result_
print(f"soft pairs: agreement {adjusted_rand_score(firm, model.labels_):.2f}")
print(f"squares {result.sum_of_squares:.1f}, penalties {result.penalty:.1f}, gap {result.gap:.2%}")

# %%
# Which pairs are violated, and were they wrong?
wrong_pairs = {tuple(pair) for pair in pairs[wrong].tolist()}
found = [(one.first, one.second) in wrong_pairs for one in result.violated_soft_pairs]
print(f"{sum(found)} of the {len(found)} violated pairs point the wrong way")

fig, ax = plt.subplots(figsize=(7, 5), layout="constrained")
model.plot(ax)
plt.show()
