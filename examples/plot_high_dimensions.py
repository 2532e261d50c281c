"""
Many features
=============

With thirty features branch and bound over space is too weak. The default, `bound="auto"`, then uses
other relaxations: spectral, semidefinite, or parts of the points.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from certikmeans import Problem, solve
from certikmeans.events import BoundImproved, IncumbentFound
from certikmeans.generate import random_pairs

tumours, diagnosis = load_breast_cancer(return_X_y=True)
points = StandardScaler().fit_transform(tumours)
must, cannot = random_pairs(diagnosis, 50, 50, seed=0)

# %%
# `solve` is the solver without an estimator. Callbacks receive every event; this one records when
# the cost decreased and when the bound increased.
costs, bounds = [], []


def remember(event):
    """Keep what the picture below needs."""
    if isinstance(event, IncumbentFound):
        costs.append((event.seconds, event.cost))
    elif isinstance(event, BoundImproved):
        bounds.append((event.seconds, event.lower_bound))


problem = Problem.from_data(points, n_clusters=2, must_link=must, cannot_link=cannot)
result = solve(problem, gap=0.005, time_limit=60, seed=0, callbacks=[remember])
print(f"{points.shape[0]} points with {points.shape[1]} features: {result.status}")
print(f"the least cost lies between {result.lower_bound:.0f} and {result.cost:.0f}")

# %%
# The bounds that were run, and the gap that each of them left.
for asked in result.attempts:
    print(f"{asked.bound}: {1 - asked.lower_bound / result.cost:.1%}")

# %%
# Cost and lower bound over time.
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for label, steps in (("cost", costs), ("lower bound", bounds)):
    seconds, values = map(list, zip(*steps, strict=True))
    ax.step([*seconds, result.seconds["total"]], [*values, values[-1]], where="post", label=label)
ax.set(xlabel="seconds", ylabel="sum of squares", ylim=(0, 1.3 * result.cost))
ax.legend()
plt.show()
