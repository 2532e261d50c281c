"""Encode objects of this package as text and arrays, and decode them. No code is ever loaded.

What is written is structure: numbers, texts, containers, arrays, random generators, and instances
of classes of this package, each with its fields. Reading makes instances without calling anything
but ``__new__`` and sets the fields; classes of other packages are rejected. Objects and arrays
that are shared stay shared.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from enum import Enum
from importlib import import_module
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

PACKAGE_PREFIX = "certikmeans."
# Arrays of whole numbers are written with the fewest bytes that hold them.
_SMALLER_DTYPES = (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32)


class UnsupportedTypeError(Exception):
    """An object that cannot be encoded, or that cannot be part of a state."""


@final
class Encoder:
    """Encodes objects as text and arrays; one encoder per file."""

    def __init__(self) -> None:
        self.objects: list[Any] = []
        self.arrays: list[NDArray[Any]] = []
        self._known: dict[int, int] = {}
        self._alive: list[object] = []  # so that no two of them share an id

    def encode(self, obj: Any) -> Any:
        """Return what `json` can write."""
        if obj is None or type(obj) in (bool, int, str):
            return obj
        if type(obj) is float:
            return obj if np.isfinite(obj) else {"f": repr(obj)}
        if isinstance(obj, Enum):
            return {"e": _qualified_name(type(obj)), "v": obj.value}
        if type(obj) is list:
            return {"l": [self.encode(one) for one in obj]}
        if type(obj) is tuple:
            return {"t": [self.encode(one) for one in obj]}
        if type(obj) in (dict, Counter):
            pairs = [[self.encode(key), self.encode(value)] for key, value in obj.items()]
            return {"d" if type(obj) is dict else "n": pairs}
        if type(obj) in (set, frozenset):
            kind = "s" if type(obj) is set else "z"
            return {kind: [self.encode(one) for one in sorted(obj)]}
        if isinstance(obj, np.generic):
            return {"g": obj.dtype.str, "v": obj.tobytes().hex()}
        return self._reference(obj)

    def _reference(self, obj: Any) -> Any:
        key = id(obj)
        if key not in self._known:
            self._known[key] = len(self.objects)
            self._alive.append(obj)
            self.objects.append(None)
            self.objects[self._known[key]] = self._object(obj)
        return {"r": self._known[key]}

    def _object(self, obj: Any) -> Any:
        if type(obj) is np.ndarray:
            if obj.dtype.kind not in "biuf":
                raise UnsupportedTypeError(f"an array of {obj.dtype}")
            self.arrays.append(obj)
            return {"a": len(self.arrays) - 1}
        if isinstance(obj, np.random.Generator):
            return {"p": self.encode(obj.bit_generator.state)}
        if isinstance(obj, tuple):  # a named one
            return {"k": _qualified_name(type(obj)), "v": [self.encode(one) for one in obj]}
        fields = {name: self.encode(value) for name, value in fields_of(obj).items()}
        return {"c": _qualified_name(type(obj)), "v": fields}


@final
class Decoder:
    """Decodes objects; raises `UnsupportedTypeError` or another error for invalid input."""

    def __init__(self, objects: list[Any], arrays: list[NDArray[Any]]) -> None:
        self._objects = objects
        self._arrays = arrays
        self._made: dict[int, Any] = {}

    def decode(self, text: Any) -> Any:
        """Return the object."""
        if not isinstance(text, dict):
            if isinstance(text, list):
                raise UnsupportedTypeError("a bare list")
            return text
        (kind, value), *rest = text.items()
        match kind:
            case "f":
                return float(value)
            case "e":
                return _find_class(value, Enum)(rest[0][1])
            case "l":
                return [self.decode(one) for one in value]
            case "t":
                return tuple(self.decode(one) for one in value)
            case "d" | "n":
                pairs = {self.decode(key): self.decode(one) for key, one in value}
                return pairs if kind == "d" else Counter(pairs)
            case "s":
                return {self.decode(one) for one in value}
            case "z":
                return frozenset(self.decode(one) for one in value)
            case "g":
                return np.frombuffer(bytes.fromhex(rest[0][1]), dtype=checked_dtype(value))[0]
            case "r":
                return self._referred(value)
        raise UnsupportedTypeError(f"the kind {kind!r}")

    def _referred(self, number: int) -> Any:
        if number not in self._made:
            self._make(number, self._objects[number])
        return self._made[number]

    def _make(self, number: int, text: dict[str, Any]) -> None:
        (kind, value), *rest = text.items()
        match kind:
            case "a":
                self._made[number] = self._arrays[value]
            case "p":
                state = self.decode(value)
                if state["bit_generator"] != "PCG64":
                    raise UnsupportedTypeError("another kind of random generator")
                bits = np.random.PCG64()
                bits.state = state
                self._made[number] = np.random.Generator(bits)
            case "k":
                make = _find_class(value, tuple)
                self._made[number] = make(*(self.decode(one) for one in rest[0][1]))
            case "c":
                kind_of_object = _find_class(value, object)
                fields = rest[0][1]
                if is_dataclass(kind_of_object) and not _has_fields(kind_of_object, fields):
                    raise UnsupportedTypeError(f"a {value} with other fields")
                made = object.__new__(kind_of_object)
                self._made[number] = made
                for name, one in fields.items():
                    object.__setattr__(made, name, self.decode(one))
            case _:
                raise UnsupportedTypeError(f"the kind {kind!r}")


def _has_fields(kind: Any, fields: dict[str, Any]) -> bool:
    """Whether these are the fields of a dataclass."""
    return fields.keys() == {field.name for field in dataclass_fields(kind)}


def fields_of(obj: Any) -> dict[str, Any]:
    """Fields of an instance by name, of its ``__slots__`` and its ``__dict__``."""
    found: dict[str, Any] = {}
    for kind in reversed(type(obj).__mro__):
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(obj, name) and not name.startswith("__"):
                found[name] = getattr(obj, name)
    found.update(getattr(obj, "__dict__", {}))
    return found


def smallest_dtype(array: NDArray[Any]) -> NDArray[Any]:
    """Return integers in the smallest type that holds them; other arrays unchanged."""
    if array.dtype.kind in "iu" and array.dtype.itemsize > 1 and array.size:
        least, most = int(array.min()), int(array.max())
        for kind in _SMALLER_DTYPES:
            limits = np.iinfo(kind)
            if limits.min <= least and most <= limits.max:
                return array.astype(kind)
    return array


def _qualified_name(kind: type) -> str:
    if not kind.__module__.startswith(PACKAGE_PREFIX) or "<" in kind.__qualname__:
        raise UnsupportedTypeError(f"a {kind.__module__}.{kind.__qualname__}")
    return f"{kind.__module__}:{kind.__qualname__}"


def _find_class(name: str, base: type) -> Any:
    """A class that is defined in a module of this package, and nothing else."""
    module_name, _, qualified = name.partition(":")
    if not module_name.startswith(PACKAGE_PREFIX):
        raise UnsupportedTypeError(f"a {name}")
    module = sys.modules.get(module_name) or import_module(module_name)
    found = vars(module).get(qualified)
    if not isinstance(found, type) or found.__module__ != module_name:
        raise UnsupportedTypeError(f"a {name}")
    if not issubclass(found, base) or issubclass(found, BaseException):
        raise UnsupportedTypeError(f"a {name}")
    return found


def checked_dtype(name: str) -> np.dtype[Any]:
    """Type of an array; raises `UnsupportedTypeError` unless it is boolean or numeric."""
    kind = np.dtype(name)
    if kind.kind not in "biuf":
        raise UnsupportedTypeError(f"an array of {name}")
    return kind
