"""Certificate files: content and binary layout.

``docs/certificate-format.md`` is the specification. Sizes are never trusted when reading: every
declared size is compared with what the other declarations allow before memory is allocated.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
import zlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

MAGIC = b"certikm\n"
VERSION = 1
VERSION_WITH_CERTAINTY = 2  # version of files with certainty claims
VERSION_WITH_CONSTRAINTS = 3  # of files with sets, sizes or soft pairs; certainty may be null
MAX_HEADER_BYTES = 1 << 16
MAX_PAYLOAD_BYTES = 1 << 31
# Limit on memory: a base, and more per point and per byte of the file.
BASE_PAYLOAD_BYTES, PAYLOAD_BYTES_PER_POINT, PAYLOAD_BYTES_PER_FILE_BYTE = 1 << 26, 32, 100
MAX_COUNT = (1 << 31) - 1
MAX_POINT_CLUSTER_PAIRS = 1 << 28  # the verifier allocates tables of points times clusters
_PREFIX = struct.Struct("<8sII")  # magic, version, length of the header

# Values of `Certificate.kinds`; all other numbers are kinds of leaves (package `leaves`).
CENTER_SPLIT, PAIR_SPLIT = 0, 1


class Reason(StrEnum):
    """Why a certificate was rejected; `ACCEPTED` if it was not."""

    ACCEPTED = "accepted"
    DAMAGED = "damaged file"
    VERSION = "unknown version"
    TOO_LARGE = "too large"
    FIELD = "impossible field"
    DATA = "other data"
    PROBLEM = "another problem"
    PAIRS = "pairs"
    LABELS = "labels"
    COST = "cost"
    TREE = "tree"
    BOUND = "bound"
    CERTAINTY = "certainty"
    LIMIT = "limit"


class Rejection(Exception):
    """Raised to end a check; carries the reason and a message."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@final
@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """A claim about a problem, and the evidence for it. Nothing in it is trusted."""

    n_points: int
    n_features: int
    n_clusters: int
    cost: float  # infinite: the claim is that no labelling exists
    lower_bound: float  # infinite: likewise
    data_sha256: str
    pairs_sha256: str
    must_link: NDArray[np.int64]  # (m, 2): i < j, sorted, distinct
    cannot_link: NDArray[np.int64]
    weights: NDArray[np.float64] | None  # (n_points,); None: all 1
    labels: NDArray[np.int64] | None  # (n_points,); None: the claim is that none exist
    center: NDArray[np.float64]  # (n_features,)
    axes: NDArray[np.float64]  # (n_features, n_axes)
    kinds: NDArray[np.uint8]  # (n_nodes,) in preorder, as are the next three
    first: NDArray[np.int64]  # cluster, point, or row of multipliers (-1: none)
    second: NDArray[np.int64]  # axis or point
    values: NDArray[np.float64]  # where a centre is split
    lengths: NDArray[np.int64]  # of the rows of multipliers
    multipliers: NDArray[np.float64]  # the rows, one after the other
    writer: str = ""
    certainty: CertaintyClaim | None = None
    constraints: StatedConstraints | None = None  # beside hard pairs
    constraints_sha256: str = ""


def hash_points(points: NDArray[np.float64]) -> str:
    """SHA-256 over the shape and the rows, as little-endian float64."""
    return _hash(b"certikmeans-points-1", points.astype("<f8", copy=False))


def hash_pairs(must_link: NDArray[np.int64], cannot_link: NDArray[np.int64]) -> str:
    """SHA-256 over both lists of pairs, as little-endian int64."""
    return _hash(b"certikmeans-pairs-1", must_link.astype("<i8"), cannot_link.astype("<i8"))


def _hash(name: bytes, *arrays: NDArray[Any]) -> str:
    digest = hashlib.sha256(name)
    for array in arrays:
        digest.update(np.asarray(array.shape, dtype="<i8").tobytes())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


# Header keys by type. Counts come first: they determine the size of every array.
_COUNTS = (
    "n_points", "n_features", "n_clusters", "n_axes", "n_must_link", "n_cannot_link",
    "n_nodes", "n_rows", "n_multipliers",
)  # fmt: skip
_FLAGS = ("weighted", "labelled")
_TEXTS = ("data_sha256", "pairs_sha256", "payload_sha256", "writer")
_NUMBERS = ("cost", "lower_bound")


def _layout(header: dict[str, Any]) -> list[tuple[str, str, int]]:
    """Name, type and length of every array of the payload, in order."""
    label = "<u1" if header["n_clusters"] <= 256 else "<u4"
    n, nodes = header["n_points"], header["n_nodes"]
    return [
        ("must_steps", "<i4", header["n_must_link"]),
        ("must_ends", "<i4", header["n_must_link"]),
        ("cannot_steps", "<i4", header["n_cannot_link"]),
        ("cannot_ends", "<i4", header["n_cannot_link"]),
        ("weights", "<f8", n if header["weighted"] else 0),
        ("labels", label, n if header["labelled"] else 0),
        ("centre", "<f8", header["n_features"]),
        ("axes", "<f8", header["n_features"] * header["n_axes"]),
        ("kinds", "<u1", nodes),
        ("first", "<i4", nodes),
        ("second", "<i4", nodes),
        ("values", "<f8", nodes),
        ("lengths", "<i4", header["n_rows"]),
        ("multipliers", "<f8", header["n_multipliers"]),
        *certainty_layout(header),
        *constraints_layout(header),
    ]


def encode(certificate: Certificate) -> bytes:
    """Encode a certificate; raise `Rejection` if it is larger than a reader would accept."""
    c = certificate
    header: dict[str, Any] = {
        "n_points": c.n_points,
        "n_features": c.n_features,
        "n_clusters": c.n_clusters,
        "n_axes": c.axes.shape[1],
        "n_must_link": len(c.must_link),
        "n_cannot_link": len(c.cannot_link),
        "n_nodes": len(c.kinds),
        "n_rows": len(c.lengths),
        "n_multipliers": len(c.multipliers),
        "weighted": c.weights is not None,
        "labelled": c.labels is not None,
        "cost": c.cost if math.isfinite(c.cost) else None,
        "lower_bound": c.lower_bound if math.isfinite(c.lower_bound) else None,
        "data_sha256": c.data_sha256,
        "pairs_sha256": c.pairs_sha256,
        "writer": c.writer,
    }
    if c.certainty is not None:
        header["certainty"] = c.certainty.header()
    if c.constraints is not None:
        header["certainty"] = header.get("certainty")
        header["constraints"] = c.constraints.header() | {"sha256": c.constraints_sha256}
    if _payload_size(_layout(header)) > MAX_PAYLOAD_BYTES:
        raise Rejection(Reason.TOO_LARGE, "the arrays of the certificate are too large")
    arrays: dict[str, NDArray[Any]] = {
        "must_steps": np.diff(c.must_link[:, 0], prepend=0),
        "must_ends": c.must_link[:, 1],
        "cannot_steps": np.diff(c.cannot_link[:, 0], prepend=0),
        "cannot_ends": c.cannot_link[:, 1],
        "weights": np.empty(0) if c.weights is None else c.weights,
        "labels": np.empty(0) if c.labels is None else c.labels,
        "centre": c.center,
        "axes": c.axes.ravel(),
        "kinds": c.kinds,
        "first": c.first,
        "second": c.second,
        "values": c.values,
        "lengths": c.lengths,
        "multipliers": c.multipliers,
    }
    if c.certainty is not None:
        arrays |= c.certainty.arrays()
    if c.constraints is not None:
        arrays |= c.constraints.payload()
    payload = b"".join(
        _byte_shuffle(arrays[name].astype(kind)) for name, kind, _ in _layout(header)
    )
    header["payload_sha256"] = hashlib.sha256(payload).hexdigest()
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    version = VERSION if c.certainty is None else VERSION_WITH_CERTAINTY
    if c.constraints is not None:
        version = VERSION_WITH_CONSTRAINTS
    start = _PREFIX.pack(MAGIC, version, len(text)) + text
    content = start + zlib.compress(payload, 6)
    if len(payload) > _max_payload_bytes(c.n_points, len(content)):
        content = start + zlib.compress(payload, 0)
    return content


def _payload_size(layout: list[tuple[str, str, int]]) -> int:
    return sum(np.dtype(kind).itemsize * length for _, kind, length in layout)


def _max_payload_bytes(n_points: int, file_size: int) -> int:
    return (
        BASE_PAYLOAD_BYTES
        + PAYLOAD_BYTES_PER_POINT * n_points
        + PAYLOAD_BYTES_PER_FILE_BYTE * file_size
    )


def _byte_shuffle(array: NDArray[Any]) -> bytes:
    """First bytes of all items, then second bytes, and so on: this compresses far better."""
    return array.view(np.uint8).reshape(len(array), array.itemsize).T.tobytes()


def decode(content: bytes, shape: tuple[int, ...] | None = None) -> Certificate:
    """Decode a certificate; raise `Rejection` for anything but a well-formed one.

    ``shape`` is that of the points: nothing larger than they allow is decompressed.
    """
    header, start = _read_header(content)
    _check_counts(header, shape)
    layout = _layout(header)
    size = _payload_size(layout)
    if size > min(MAX_PAYLOAD_BYTES, _max_payload_bytes(header["n_points"], len(content))):
        raise Rejection(Reason.TOO_LARGE, f"the arrays would take {size} bytes")
    payload = _inflate(content, start, size)
    if hashlib.sha256(payload).hexdigest() != header["payload_sha256"]:
        raise Rejection(Reason.DAMAGED, "the checksum of the arrays does not match")
    arrays: dict[str, Any] = {}
    position = 0
    for name, kind, length in layout:
        item = np.dtype(kind).itemsize
        raw = np.frombuffer(payload, np.uint8, length * item, position).reshape(item, length)
        array = np.ascontiguousarray(raw.T).view(kind).reshape(length)
        native = np.float64 if kind == "<f8" else np.uint8 if name == "kinds" else np.int64
        arrays[name] = array.astype(native)
        position += length * item
    return _assemble(header, arrays)


def _read_header(content: bytes) -> tuple[dict[str, Any], int]:
    if len(content) < _PREFIX.size:
        raise Rejection(Reason.DAMAGED, "the file is too short to be a certificate")
    magic, version, length = _PREFIX.unpack_from(content)
    if magic != MAGIC:
        raise Rejection(
            Reason.DAMAGED, "the file does not start with the magic bytes of a certificate"
        )
    if not VERSION <= version <= VERSION_WITH_CONSTRAINTS:
        known = f"{VERSION} to {VERSION_WITH_CONSTRAINTS}"
        raise Rejection(Reason.VERSION, f"version {version}; this program reads versions {known}")
    if length > MAX_HEADER_BYTES or _PREFIX.size + length > len(content):
        raise Rejection(Reason.DAMAGED, "the header is longer than the file or than allowed")
    try:
        header = json.loads(content[_PREFIX.size : _PREFIX.size + length])
    except (ValueError, RecursionError) as error:
        raise Rejection(Reason.DAMAGED, "the header is not JSON") from error
    expected = {*_COUNTS, *_FLAGS, *_TEXTS, *_NUMBERS}
    if version >= VERSION_WITH_CERTAINTY:
        expected |= {"certainty"}
    if version == VERSION_WITH_CONSTRAINTS:
        expected |= {"constraints"}
    if not isinstance(header, dict) or set(header) != expected:
        raise Rejection(Reason.FIELD, "the header does not have the fields of this version")
    for name in _COUNTS:
        value = header[name]
        if type(value) is not int or not 0 <= value <= MAX_COUNT:
            raise Rejection(Reason.FIELD, f"{name} is not a count")
    if any(type(header[name]) is not bool for name in _FLAGS):
        raise Rejection(Reason.FIELD, "a flag is neither true nor false")
    if any(not isinstance(header[name], str) for name in _TEXTS):
        raise Rejection(Reason.FIELD, "a text field is not a string")
    problem = None
    if version == VERSION_WITH_CONSTRAINTS:
        problem = constraints_header_error(header["constraints"], MAX_COUNT)
    if version == VERSION_WITH_CERTAINTY or header.get("certainty") is not None:
        problem = problem or claim_header_error(header["certainty"], header["labelled"], MAX_COUNT)
    if problem is not None:
        raise Rejection(Reason.FIELD, problem)
    for name in _NUMBERS:
        header[name] = _parse_number(header[name], name, infinite=not header["labelled"])
    return header, _PREFIX.size + length


def _check_counts(header: dict[str, Any], shape: tuple[int, ...] | None) -> None:
    """Reject sizes that are impossible for a certificate of such points."""
    n, d = header["n_points"], header["n_features"]
    if shape is not None and shape != (n, d):
        raise Rejection(Reason.DATA, f"the data have shape {shape}, not {(n, d)}")
    if not 1 <= header["n_axes"] <= max(1, d):
        raise Rejection(Reason.FIELD, f"{header['n_axes']} axes of {d} features")
    if header["n_rows"] > header["n_nodes"]:
        raise Rejection(Reason.TREE, "there are more rows of multipliers than nodes")
    if header["n_rows"] > header["n_multipliers"]:
        raise Rejection(Reason.FIELD, "the rows of multipliers are too short")


def _parse_number(value: Any, name: str, *, infinite: bool) -> float:
    """Return a finite number of at least 0, or infinity where no labelling is claimed to exist."""
    if infinite:
        if value is not None:
            raise Rejection(Reason.FIELD, f"{name} is given although there are no labels")
        return math.inf
    if type(value) not in (int, float) or not 0 <= value <= 1e300:
        raise Rejection(Reason.FIELD, f"{name} is not a finite number of at least 0")
    return float(value)


def _inflate(content: bytes, start: int, size: int) -> bytes:
    """Decompress exactly ``size`` bytes; nothing may be left over."""
    stream = zlib.decompressobj()
    try:
        # Memory grows with the content of the stream, not with the size declared in the header.
        payload = stream.decompress(memoryview(content)[start:], size + 1)
    except zlib.error as error:
        raise Rejection(Reason.DAMAGED, f"the arrays cannot be decompressed ({error})") from error
    if len(payload) > size:
        raise Rejection(Reason.DAMAGED, "the arrays are longer than the header says")
    if len(payload) < size or not stream.eof:
        raise Rejection(Reason.DAMAGED, "the arrays are shorter than the header says")
    if stream.unused_data:
        raise Rejection(Reason.DAMAGED, "there are bytes after the end")
    return payload


def _assemble(header: dict[str, Any], arrays: dict[str, Any]) -> Certificate:
    lengths = arrays["lengths"]
    if lengths.size and lengths.min() < 1:
        raise Rejection(Reason.FIELD, "a row of multipliers is empty")
    if int(lengths.sum()) != header["n_multipliers"]:
        raise Rejection(Reason.FIELD, "the rows of multipliers do not add up")
    shape = (header["n_features"], header["n_axes"])
    return Certificate(
        n_points=header["n_points"],
        n_features=header["n_features"],
        n_clusters=header["n_clusters"],
        cost=header["cost"],
        lower_bound=header["lower_bound"],
        data_sha256=header["data_sha256"],
        pairs_sha256=header["pairs_sha256"],
        must_link=_decode_pairs(arrays["must_steps"], arrays["must_ends"]),
        cannot_link=_decode_pairs(arrays["cannot_steps"], arrays["cannot_ends"]),
        weights=arrays["weights"] if header["weighted"] else None,
        labels=arrays["labels"] if header["labelled"] else None,
        center=arrays["centre"],
        axes=arrays["axes"].reshape(shape),
        kinds=arrays["kinds"],
        first=arrays["first"],
        second=arrays["second"],
        values=arrays["values"],
        lengths=lengths,
        multipliers=arrays["multipliers"],
        writer=header["writer"],
        certainty=CertaintyClaim.read(header, arrays),
        constraints=StatedConstraints.read(header, arrays),
        constraints_sha256=(header.get("constraints") or {"sha256": ""})["sha256"],
    )


def _decode_pairs(steps: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.column_stack([np.cumsum(steps), ends])


# Certainty claims. Part of the format.

_CERTAINTY_COUNTS, _CERTAINTY_NUMBERS = ("n_boxes", "n_groups"), ("slack", "sigma")


@final
@dataclass(frozen=True, slots=True, eq=False)
class CertaintyClaim:
    """Claims about every labelling that costs at most ``(1 + slack)`` times the cost."""

    slack: float
    sigma: float  # upper bound on the value of clusters
    multipliers: NDArray[np.float64]  # (n_groups,)
    low: NDArray[np.float64]  # (n_boxes, n_axes)
    high: NDArray[np.float64]
    cluster: NDArray[np.int64]  # (n_boxes,)
    certain: NDArray[np.int64]  # (n_points,): 1 if the point is certain to be in its cluster

    def header(self) -> dict[str, Any]:
        """Return the fields of the header."""
        counts = {"n_boxes": len(self.cluster), "n_groups": len(self.multipliers)}
        return {"slack": self.slack, "sigma": self.sigma, **counts}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays, by the names of `certainty_layout`."""
        return {
            "level": self.multipliers,
            "low": self.low.ravel(),
            "high": self.high.ravel(),
            "cluster": self.cluster,
            "certain": self.certain,
        }

    @classmethod
    def read(cls, header: dict[str, Any], arrays: dict[str, Any]) -> CertaintyClaim | None:
        """Assemble the claims from decoded data; None if there are none."""
        claim = header.get("certainty")
        if claim is None:
            return None
        shape = (claim["n_boxes"], header["n_axes"])
        return cls(
            slack=float(claim["slack"]),
            sigma=float(claim["sigma"]),
            multipliers=arrays["level"],
            low=arrays["low"].reshape(shape),
            high=arrays["high"].reshape(shape),
            cluster=arrays["cluster"],
            certain=arrays["certain"],
        )


def certainty_layout(header: dict[str, Any]) -> list[tuple[str, str, int]]:
    """Name, type and length of the arrays of certainty claims, after all others."""
    claim = header.get("certainty")
    if claim is None:
        return []
    return [
        ("level", "<f8", claim["n_groups"]),
        ("low", "<f8", claim["n_boxes"] * header["n_axes"]),
        ("high", "<f8", claim["n_boxes"] * header["n_axes"]),
        ("cluster", "<i4", claim["n_boxes"]),
        ("certain", "<u1", header["n_points"]),
    ]


def claim_header_error(claim: Any, labelled: bool, largest: int) -> str | None:
    """Return what is invalid in the certainty header, or None."""
    if not (isinstance(claim, dict) and set(claim) == {*_CERTAINTY_COUNTS, *_CERTAINTY_NUMBERS}):
        return "certainty does not have the fields of this version"
    if not labelled:
        return "certainty is claimed although there are no labels"
    for name in _CERTAINTY_COUNTS:
        if type(claim[name]) is not int or not 1 <= claim[name] <= largest:
            return f"{name} of certainty is not a count"
    for name in _CERTAINTY_NUMBERS:
        if type(claim[name]) not in (int, float) or not 0 <= claim[name] <= 1e300:
            return f"{name} of certainty is not a finite number of at least 0"
    return None


_CONSTRAINT_COUNTS = ("n_set_columns", "n_soft_must_link", "n_soft_cannot_link")
_CONSTRAINT_FLAGS = ("size_min", "size_max", "demand")
FIELDS = {*_CONSTRAINT_COUNTS, *_CONSTRAINT_FLAGS, "sha256"}


@final
@dataclass(frozen=True, slots=True, eq=False)
class StatedConstraints:
    """Sets, sizes and soft pairs between points, as they were given to the solver."""

    set_columns: NDArray[np.int64]  # (n_columns, n_points): number of the set of a point, or -1
    size_min: NDArray[np.float64] | None  # (n_clusters,)
    size_max: NDArray[np.float64] | None
    demand: NDArray[np.float64] | None  # (n_points,); None: all 1
    soft_must_link: NDArray[np.int64]  # (m, 2)
    must_penalties: NDArray[np.float64]  # (m,)
    soft_cannot_link: NDArray[np.int64]
    cannot_penalties: NDArray[np.float64]

    @classmethod
    def of(cls, arrays: dict[str, NDArray[Any]], n_points: int) -> StatedConstraints:
        """Return the constraints of arrays by name, as `Problem.other_arrays` has them."""
        pairs, numbers = np.empty((0, 2), dtype=np.int64), np.empty(0)
        return cls(
            arrays.get("cannot_link_groups", np.empty((0, n_points), dtype=np.int64)),
            arrays.get("size_min"),
            arrays.get("size_max"),
            arrays.get("demand"),
            arrays.get("soft_must_link", pairs),
            arrays.get("soft_must_link_penalties", numbers),
            arrays.get("soft_cannot_link", pairs),
            arrays.get("soft_cannot_link_penalties", numbers),
        )

    @property
    def has_sizes(self) -> bool:
        """Whether the sizes of clusters are limited."""
        return self.size_min is not None or self.size_max is not None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, without empty ones: the input of the hash."""
        found: dict[str, NDArray[Any] | None] = {
            "cannot_link_groups": self.set_columns,
            "size_min": self.size_min,
            "size_max": self.size_max,
            "demand": self.demand,
            "soft_must_link": self.soft_must_link,
            "soft_must_link_penalties": self.must_penalties,
            "soft_cannot_link": self.soft_cannot_link,
            "soft_cannot_link_penalties": self.cannot_penalties,
        }
        return {name: array for name, array in found.items() if array is not None and len(array)}

    def sha256(self) -> str:
        """Return the hash of all arrays."""
        return hash_constraints(self.arrays())

    def header(self) -> dict[str, Any]:
        """Return the fields of the header."""
        return {
            "n_set_columns": len(self.set_columns),
            "n_soft_must_link": len(self.must_penalties),
            "n_soft_cannot_link": len(self.cannot_penalties),
            "size_min": self.size_min is not None,
            "size_max": self.size_max is not None,
            "demand": self.demand is not None,
            "sha256": self.sha256(),
        }

    def payload(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by the names of `constraints_layout`."""
        none = np.empty(0)
        return {
            "set_columns": self.set_columns.ravel(),
            "size_min": none if self.size_min is None else self.size_min,
            "size_max": none if self.size_max is None else self.size_max,
            "demand": none if self.demand is None else self.demand,
            "soft_must_first": self.soft_must_link[:, 0],
            "soft_must_second": self.soft_must_link[:, 1],
            "soft_must_penalties": self.must_penalties,
            "soft_cannot_first": self.soft_cannot_link[:, 0],
            "soft_cannot_second": self.soft_cannot_link[:, 1],
            "soft_cannot_penalties": self.cannot_penalties,
        }

    @classmethod
    def read(cls, header: dict[str, Any], arrays: dict[str, Any]) -> StatedConstraints | None:
        """Assemble the constraints from decoded data; None if there are none."""
        stated = header.get("constraints")
        if stated is None:
            return None

        def pairs(name: str) -> NDArray[np.int64]:
            return np.column_stack([arrays[f"soft_{name}_first"], arrays[f"soft_{name}_second"]])

        return cls(
            arrays["set_columns"].reshape(stated["n_set_columns"], header["n_points"]),
            arrays["size_min"] if stated["size_min"] else None,
            arrays["size_max"] if stated["size_max"] else None,
            arrays["demand"] if stated["demand"] else None,
            pairs("must"),
            arrays["soft_must_penalties"],
            pairs("cannot"),
            arrays["soft_cannot_penalties"],
        )


def hash_constraints(arrays: dict[str, NDArray[Any]]) -> str:
    """SHA-256 over arrays of constraints by name; empty if there are none."""
    if not arrays:
        return ""
    digest = hashlib.sha256(b"certikmeans-constraints-1")
    for name in sorted(arrays):
        array = arrays[name].astype("<f8" if arrays[name].dtype.kind == "f" else "<i8")
        digest.update(name.encode() + b"\0")
        digest.update(np.asarray(array.shape, dtype="<i8").tobytes())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def constraints_layout(header: dict[str, Any]) -> list[tuple[str, str, int]]:
    """Name, type and length of the arrays of constraints."""
    stated = header.get("constraints")
    if stated is None:
        return []
    n, k = header["n_points"], header["n_clusters"]
    must, cannot = stated["n_soft_must_link"], stated["n_soft_cannot_link"]
    return [
        ("set_columns", "<i4", stated["n_set_columns"] * n),
        ("size_min", "<f8", k if stated["size_min"] else 0),
        ("size_max", "<f8", k if stated["size_max"] else 0),
        ("demand", "<f8", n if stated["demand"] else 0),
        ("soft_must_first", "<i4", must),
        ("soft_must_second", "<i4", must),
        ("soft_must_penalties", "<f8", must),
        ("soft_cannot_first", "<i4", cannot),
        ("soft_cannot_second", "<i4", cannot),
        ("soft_cannot_penalties", "<f8", cannot),
    ]


def constraints_header_error(stated: Any, largest: int) -> str | None:
    """Return what is invalid in the header of the constraints, or None."""
    if not (isinstance(stated, dict) and set(stated) == FIELDS):
        return "the constraints do not have the fields of this version"
    for name in _CONSTRAINT_COUNTS:
        if type(stated[name]) is not int or not 0 <= stated[name] <= largest:
            return f"{name} is not a count"
    if any(type(stated[name]) is not bool for name in _CONSTRAINT_FLAGS):
        return "a flag of the constraints is neither true nor false"
    if not isinstance(stated["sha256"], str):
        return "the hash of the constraints is not a text"
    return None
