"""Docstrings name the parameters that there are, and the choices that are registered."""

from __future__ import annotations

import dataclasses
import inspect
import re
from importlib import import_module
from pkgutil import walk_packages

import pytest

import certikmeans
from certikmeans import options
from certikmeans.bounds.registry import BOUNDS, make_bound
from certikmeans.options import Options

CHOICES = {
    "bound": options.BOUNDS,
    "branching": options.BRANCHINGS,
    "selection": options.SELECTIONS,
}


def section(thing, title):
    """Names that a numpydoc section describes, in order; None if there is no such section."""
    text = inspect.getdoc(thing) or ""
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", text, re.DOTALL | re.MULTILINE)
    if found is None:
        return None
    heads = re.findall(r"^(\S[^:\n]*?)(?: :.*)?$", found[1], re.MULTILINE)
    return [name.strip("* ") for head in heads for name in head.split(",")]


def parameters(thing):
    """Names in the signature; settings of a run stand for ``**changes`` in `solve`."""
    names = [name for name in inspect.signature(thing).parameters if name not in ("self", "cls")]
    if thing is certikmeans.solve:
        names += [field.name for field in dataclasses.fields(Options)]
    return names


def ours(thing):
    return (inspect.isclass(thing) or inspect.isfunction(thing)) and (
        getattr(thing, "__module__", "") or ""
    ).startswith("certikmeans")


def described():
    """Everything in the package with a section of parameters, methods included."""
    found = {}
    for module in walk_packages(certikmeans.__path__, "certikmeans."):
        if module.name.endswith("__main__"):
            continue
        for thing in vars(import_module(module.name)).values():
            if ours(thing):
                inner = vars(thing).values() if inspect.isclass(thing) else ()
                methods = [getattr(one, "__func__", one) for one in inner]
                for one in (thing, *filter(inspect.isfunction, methods)):
                    if section(one, "Parameters") is not None:
                        found[f"{one.__module__}.{one.__qualname__}"] = one
    return found


DESCRIBED = described()


def test_the_sweep_finds_something():
    assert "certikmeans.api.solve" in DESCRIBED
    assert "certikmeans.options.Options" in DESCRIBED
    assert "certikmeans.estimator.ConstrainedKMeans.fit" in DESCRIBED
    assert len(DESCRIBED) > 20


@pytest.mark.parametrize("name", DESCRIBED)
def test_parameters_are_those_of_the_signature(name):
    thing = DESCRIBED[name]
    names = section(thing, "Parameters")
    assert len(names) == len(set(names))
    assert set(names) <= set(parameters(thing))  # inside, what is plain need not be listed


def fields_of(thing):
    return [field.name for field in dataclasses.fields(thing)]


def public():
    for name in certikmeans.__all__:
        thing = getattr(certikmeans, name)
        if ours(thing):
            yield pytest.param(thing, id=name)
    yield pytest.param(Options, id="Options")
    for name in BOUNDS:
        yield pytest.param(type(make_bound(name)), id=f"bound {name}")


@pytest.mark.parametrize("thing", list(public()))
def test_public_names_describe_all_they_take(thing):
    assert inspect.getdoc(thing)
    if dataclasses.is_dataclass(thing) and section(thing, "Parameters") is None:
        described = section(thing, "Attributes")
        assert described is not None
        assert set(fields_of(thing)) <= set(described)
    else:
        # Errors and enumerations without an own constructor are built as their base class says.
        own = not inspect.isclass(thing) or "__init__" in vars(thing)
        assert sorted(section(thing, "Parameters") or []) == sorted(parameters(thing) * own)


def test_choices_are_the_registered_ones():
    seen = set()
    for name, thing in DESCRIBED.items():
        for setting, known in CHOICES.items():
            for listed in re.findall(
                rf"^{setting} : \{{([^}}]*)\}}", inspect.getdoc(thing), re.MULTILINE
            ):
                seen.add((name.rpartition(".")[2], setting))
                assert tuple(re.findall(r'"(\w+)"', listed)) == known, (name, setting)
    for name in ("solve", "Options"):
        assert {(name, setting) for setting in CHOICES} <= seen
    assert {("ConstrainedKMeans", "bound"), ("ConstrainedKMeans", "branching")} <= seen
