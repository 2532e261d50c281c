"""Docstrings list the parameters of the signature and the registered choices."""

from __future__ import annotations

import dataclasses
import inspect
import re
from importlib import import_module
from pkgutil import walk_packages

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


def test_documented_objects_are_found():
    assert "certikmeans.api.solve" in DESCRIBED
    assert "certikmeans.options.Options" in DESCRIBED
    assert "certikmeans.estimator.ConstrainedKMeans.fit" in DESCRIBED
    assert len(DESCRIBED) > 20


def test_documented_parameters_exist():
    """Internal functions may leave parameters out."""
    offenders = []
    for name, thing in DESCRIBED.items():
        names = section(thing, "Parameters")
        if len(names) != len(set(names)):
            offenders.append(f"{name}: a parameter is listed twice")
        if unknown := set(names) - set(parameters(thing)):
            offenders.append(f"{name}: {sorted(unknown)}")
    assert offenders == []


def fields_of(thing):
    return [field.name for field in dataclasses.fields(thing)]


def public():
    found = {name: getattr(certikmeans, name) for name in certikmeans.__all__}
    found["Options"] = Options
    found |= {f"bound {name}": type(make_bound(name)) for name in BOUNDS}
    return {name: thing for name, thing in found.items() if ours(thing)}


def undocumented(thing):
    """Difference between the documented and the actual parameters or fields."""
    if dataclasses.is_dataclass(thing) and section(thing, "Parameters") is None:
        return set(fields_of(thing)) - set(section(thing, "Attributes") or [])
    # Errors and enumerations without a constructor of their own are built like their base class.
    own = not inspect.isclass(thing) or "__init__" in vars(thing)
    listed = section(thing, "Parameters") or []
    assert len(listed) == len(set(listed)), thing
    return set(listed) ^ set(parameters(thing) * own)


def test_public_names_document_all_parameters():
    assert len(public()) > 20
    offenders = {name: undocumented(thing) for name, thing in public().items()}
    assert {name: missing for name, missing in offenders.items() if missing} == {}
    assert [name for name, thing in public().items() if not inspect.getdoc(thing)] == []


def test_listed_choices_are_registered():
    seen = set()
    for name, thing in DESCRIBED.items():
        for setting, known in CHOICES.items():
            for listed in re.findall(
                rf"^{setting} : \{{([^}}]*)\}}", inspect.getdoc(thing), re.MULTILINE
            ):
                seen.add((name.rpartition(".")[2], setting))
                assert tuple(re.findall(r'"(\w+)"', listed)) == known, (name, setting)
    # The names of bounds are listed in one place, to which the others refer.
    assert {("Options", setting) for setting in CHOICES} <= seen
    assert {("solve", "branching"), ("solve", "selection")} <= seen
    assert ("ConstrainedKMeans", "branching") in seen
    for thing in (certikmeans.solve, certikmeans.ConstrainedKMeans):
        assert re.search(r"^bound : str.*\n.*`Options` lists", inspect.getdoc(thing), re.MULTILINE)
