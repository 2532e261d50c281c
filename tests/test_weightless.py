"""Points that weigh nothing: accepted by `solve`, the command line and certificates."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

from certikmeans import InputError, Problem, Status, solve
from certikmeans.certificate import format as form
from certikmeans.certificate.check import check_certificate
from certikmeans.certificate.format import Reason
from certikmeans.certificate.write import make_certificate
from certikmeans.presolve.reductions import must_link_groups
from certikmeans.testing.instances import feasible_problem
from certikmeans.testing.oracle import brute_force, exact_cost, respects
from tests.certificate.helpers import change, verdict
from tests.cli.process import run

POINTS = np.array([[0.0], [1.0], [4.0], [9.0], [10.0], [30.0], [-7.0]])
WEIGHTS = np.array([1.0, 2.0, 1.0, 1.0, 3.0, 0.0, 0.0])
# Must-links of the weightless points 5 and 6: what they do to the points that weigh something.
MUST_LINKS = {
    "none": [],
    "one to a weighted point": [(5, 0)],
    "both to one weighted point": [(5, 2), (6, 2)],
    "to each other": [(5, 6)],
    "a bridge between weighted points": [(0, 5), (5, 3)],
    "a bridge of two": [(1, 5), (5, 6), (6, 4)],
}


def weighted_part(problem):
    """The same problem without the weightless points; must-links through them are kept."""
    heavy = np.flatnonzero(problem.weights > 0.0)
    number = {int(row): i for i, row in enumerate(heavy)}
    groups = must_link_groups(problem.n_points, problem.must_link)
    joined = [
        (number[int(i)], number[int(j)])
        for a, i in enumerate(heavy)
        for j in heavy[a + 1 :]
        if groups[i] == groups[j]
    ]
    # A cannot-link of a weightless point parts the weighted points that it is joined to.
    apart = [
        (number[int(a)], number[int(b)])
        for i, j in problem.cannot_link
        for a in heavy[groups[heavy] == groups[i]]
        for b in heavy[groups[heavy] == groups[j]]
    ]
    return Problem.from_data(
        problem.points[heavy],
        problem.n_clusters,
        must_link=joined,
        cannot_link=apart,
        weights=problem.weights[heavy],
    )


def weightless_problem(seed):
    for number in range(100):
        problem = feasible_problem(seed + 1_000 * number, weightless=True)
        heavy = int((problem.weights > 0.0).sum())
        if problem.n_clusters <= heavy < problem.n_points:
            return problem
    raise AssertionError("nothing to test in 100 draws")


def check_run(problem, result):
    optimum, _ = brute_force(weighted_part(problem))
    assert brute_force(problem)[0] == optimum
    assert respects(result.labels, problem.must_link, problem.cannot_link)
    assert result.labels.min() >= 0
    assert result.labels.max() < problem.n_clusters
    exact = exact_cost(problem.points, problem.weights, result.labels)
    assert Fraction(result.lower_bound) <= optimum <= exact <= Fraction(result.cost)
    scatter = exact_cost(problem.points, problem.weights, [0] * problem.n_points)
    assert exact - optimum <= Fraction(1e-12) * scatter


@pytest.mark.parametrize("seed", range(40))
def test_against_brute_force_over_the_weighted_part(seed):
    problem = weightless_problem(seed)
    check_run(problem, solve(problem, seed=seed, jobs=1))


@pytest.mark.parametrize("links", MUST_LINKS)
@pytest.mark.parametrize("cannot_link", [[], [(0, 1), (3, 4)]], ids=["free", "linked"])
def test_must_links_of_weightless_points(links, cannot_link):
    problem = Problem.from_data(
        POINTS, 3, must_link=MUST_LINKS[links], cannot_link=cannot_link, weights=WEIGHTS
    )
    result = solve(problem, jobs=1)
    check_run(problem, result)
    assert result.status is Status.OPTIMAL
    if links == "none":  # no must-link decides: nearest centre
        away = np.abs(POINTS[5:] - result.centers[:, 0])
        assert np.array_equal(result.labels[5:], away.argmin(axis=1))


def test_where_they_are_does_not_matter():
    moved = POINTS.copy()
    moved[5:] *= -1e6
    results = [
        solve(Problem.from_data(points, 3, must_link=[(5, 0)], weights=WEIGHTS), jobs=1)
        for points in (POINTS, moved)
    ]
    assert np.array_equal(results[0].labels[:6], results[1].labels[:6])
    assert results[0].cost == pytest.approx(results[1].cost, rel=1e-9)


def test_cannot_link_needs_weight():
    linked = Problem.from_data(POINTS, 3, must_link=[(5, 0)], cannot_link=[(5, 1)], weights=WEIGHTS)
    result = solve(linked, jobs=1)
    check_run(linked, result)
    assert result.labels[0] != result.labels[1]
    with pytest.raises(InputError):
        solve(Problem.from_data(POINTS, 3, cannot_link=[(5, 1)], weights=WEIGHTS))


@pytest.mark.parametrize("links", MUST_LINKS)
@pytest.mark.parametrize("branching", ["centers", "pairs"])
def test_certificates(links, branching):
    problem = Problem.from_data(
        POINTS, 3, must_link=MUST_LINKS[links], cannot_link=[(0, 1), (3, 4)], weights=WEIGHTS
    )
    result = solve(problem, branching=branching, keep_proof=True, gap=1e-6, jobs=1)
    made = make_certificate(problem, result)
    answer = check_certificate(problem.points, form.encode(made))
    assert answer.accepted, answer.message
    optimum = float(brute_force(problem)[0])
    beyond = change(made, lower_bound=optimum * (1 + 1e-6), cost=optimum * 2)
    assert verdict(problem, beyond).reason is Reason.BOUND
    assert not verdict(problem, change(made, cost=optimum * (1 - 1e-6))).accepted
    if MUST_LINKS[links]:
        (i, j), *_ = MUST_LINKS[links]
        labels = made.labels.copy()
        labels[i] = (labels[j] + 1) % 3
        assert not verdict(problem, change(made, labels=labels)).accepted


def test_command_line(tmp_path):
    np.savetxt(tmp_path / "points.csv", POINTS, delimiter=",")
    np.savetxt(tmp_path / "weights.txt", WEIGHTS)
    (tmp_path / "together.csv").write_text("0,5\n5,3\n")
    inputs = ("--weights", "weights.txt", "--must-link", "together.csv")
    made = run(
        "solve", "points.csv", "-k", 3, *inputs, "--certificate", "proof", "--json", cwd=tmp_path
    )
    assert made.returncode == 0, made.stderr
    found = json.loads(made.stdout)
    problem = Problem.from_data(POINTS, 3, must_link=[(0, 5), (5, 3)], weights=WEIGHTS)
    optimum = float(brute_force(weighted_part(problem))[0])
    assert found["cost"] == pytest.approx(optimum, rel=1e-9)
    assert respects(found["labels"], problem.must_link, [])
    check = ("check", "proof", "--data", "points.csv", *inputs)
    assert run(*check, cwd=tmp_path).returncode == 0
    content = form.decode((tmp_path / "proof").read_bytes())
    lie = change(content, lower_bound=optimum * (1 + 1e-6), cost=optimum * 2)
    (tmp_path / "proof").write_bytes(form.encode(lie))
    assert run(*check, cwd=tmp_path).returncode == 4
