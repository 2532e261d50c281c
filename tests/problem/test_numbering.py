"""Names by first appearance, whatever the old ones are."""

import numpy as np
import pytest

from certikmeans.problem.numbering import FEW, number_by_appearance


@pytest.mark.parametrize("highest", [1, 3, FEW - 1, FEW, 5 * FEW])
@pytest.mark.parametrize("lowest", [0, 2, -4])
def test_numbers_follow_the_first_appearance(highest, lowest):
    rng = np.random.default_rng(0)
    for size in (1, 2, 7, 200):
        labels = rng.integers(lowest, max(highest, lowest) + 1, size=size)
        names: dict[int, int] = {}
        expected = [names.setdefault(label, len(names)) for label in labels.tolist()]
        assert number_by_appearance(labels).tolist() == expected


def test_a_label_that_comes_late_is_the_last():
    labels = np.repeat(np.array([3, 5, 1]), [400_000, 1, 200_000])  # several blocks
    found = number_by_appearance(labels)
    assert np.array_equal(found, np.repeat(np.arange(3), [400_000, 1, 200_000]))
