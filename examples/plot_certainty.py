"""
Which labels are certain
========================

A proven cost does not say that the labels are the only good ones. Certainty does: it states what
holds for every labelling within a given tolerance of the cost, and which points could be in another
cluster.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from certikmeans import ActiveSession, Problem
from certikmeans.report.plots import plot_clusters

points, species = load_iris(return_X_y=True)

# %%
# Solve, then compute what is certain.
session = ActiveSession(Problem.from_data(points, n_clusters=3), slack=0.002)
sure = session.result.certainty(slack=0.002)
print(sure)
print("in doubt:", np.flatnonzero(~sure.certain))

# %%
# Rings mark the points that may be in another cluster within 0.2 %; frames contain the centers.
plot_clusters(session.problem, session.result, certainty=sure)
plt.show()

# %%
# Ask an expert (here: the true species) about the points that are not certain, and solve
# again with the answers.
questions = session.questions(10)
session.answer([(*q.pair, bool(species[q.point] == species[q.example])) for q in questions])
print(f"after {len(questions)} answers: {session.result.certainty(slack=0.002)}")
