"""
How many labels are enough?
===========================

Some tumours have a diagnosis, most have only measurements. Cross-validation measures how
much the diagnoses help: fit on the training rows with what is known about them, predict the rest.

Pairs refer to rows, so a subset of the rows needs pairs of its own: `Constraints.subset`
renumbers them and keeps pairs implied by rows that were left out.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from certikmeans import ConstrainedKMeans, Constraints

points, diagnosis = load_breast_cancer(return_X_y=True)

# %%
# A pipeline routes the pairs to the step that requests them. Only labels are needed here, not
# proofs, so the cheapest bound is enough, without a tree, and the warning about the gap is
# suppressed.
warnings.simplefilter("ignore", ConvergenceWarning)
sklearn.set_config(enable_metadata_routing=True)
clusterer = ConstrainedKMeans(n_clusters=2, bound="sample", node_limit=1, random_state=0)
clusterer.set_fit_request(must_link=True, cannot_link=True)
pipeline = make_pipeline(StandardScaler(), clusterer)


def agreement_with_the_truth(known_labels):
    """Adjusted Rand index on tumours that took no part in the fit, one value per fold."""
    constraints = Constraints.from_partial_labels(known_labels)
    values = []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(points, diagnosis):
        known = constraints.subset(train)
        pipeline.fit(points[train], **known.as_fit_params(len(train)))
        values.append(adjusted_rand_score(diagnosis[test], pipeline.predict(points[test])))
    return values


# %%
# Reveal more and more diagnoses; -1 means unknown.
order = np.random.default_rng(0).permutation(len(points))
counts = [0, 100, 200, 400]
agreement = []
for count in counts:
    labels = np.full(len(points), -1)
    labels[order[:count]] = diagnosis[order[:count]]
    agreement.append(agreement_with_the_truth(labels))
    mean = np.mean(agreement[-1])
    print(f"{count:3d} known diagnoses: adjusted Rand index {mean:.2f} on unseen tumours")

# %%
# A dot per fold, and their mean: the folds differ more than the numbers of diagnoses do.
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.plot(counts, np.mean(agreement, axis=1), marker="o")
ax.plot(counts, agreement, ".", color="0.5")
ax.set(xlabel="known diagnoses", ylabel="adjusted Rand index, unseen tumours")
plt.show()
