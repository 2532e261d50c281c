"""
Certificates
============

A certificate is a file with the proof of a run. It is verified against the points by code that
shares nothing with the solver, so that the run itself need not be trusted.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from certikmeans import ConstrainedKMeans, check_certificate

points, species = load_iris(return_X_y=True)
rng = np.random.default_rng(0)
pairs = rng.choice(len(points), size=(30, 2), replace=False)
same = species[pairs[:, 0]] == species[pairs[:, 1]]
given = {"must_link": pairs[same], "cannot_link": pairs[~same]}

# %%
# Store the proof, and write it.
model = ConstrainedKMeans(n_clusters=3, random_state=0, keep_proof=True).fit(points, **given)
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "iris.certificate"
model.write_certificate(path)
print(f"cost {model.inertia_:.6f}, lower bound {model.lower_bound_:.6f}")

# %%
# Verification needs the points, the pairs and the file. On the command line:
# `certikmeans check iris.certificate --data iris.csv --constraints pairs.txt`.
content = path.read_bytes()
verdict = check_certificate(points, content, n_clusters=3, **given)
print("accepted" if verdict.accepted else "refused", "-", verdict.message)
print(f"no labelling that respects the pairs costs less than {verdict.lower_bound:.6f}")

# %%
# A certificate holds for these points only: if a point or a single byte of the file is changed, it
# is refused.
other = points.copy()
other[0, 0] += 0.1
print(check_certificate(other, content, n_clusters=3).message)

damaged = bytearray(content)
damaged[len(damaged) // 2] ^= 1
print(check_certificate(points, bytes(damaged)).message)

# %%
folder.cleanup()
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
model.plot(ax)
ax.set_title(f"gap {model.gap_:.2%}, checked")
plt.show()
