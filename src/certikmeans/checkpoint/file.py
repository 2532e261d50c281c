"""The checkpoint file: fingerprint of the problem, options, and state of the run.

A prefix (magic, version, lengths, SHA-256 of the rest), then one compressed stream: JSON, and the
arrays one after the other. A checkpoint is written by a run for itself: what it says about pairs
and data is compared with the problem, its labels are checked and their cost is computed again,
its bounds are taken as proven. A file that is not trusted is no substitute for a certificate.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from certikmeans._version import __version__
from certikmeans.certificate.format import MAGIC as CERTIFICATE_MAGIC
from certikmeans.certificate.format import hash_constraints, hash_pairs, hash_points
from certikmeans.checkpoint.codec import (
    Decoder,
    Encoder,
    UnsupportedTypeError,
    checked_dtype,
    smallest_dtype,
)
from certikmeans.errors import InputError

if TYPE_CHECKING:
    from certikmeans.options import Options
    from certikmeans.problem import Problem

MAGIC = b"certikc\n"
VERSION = 2
READABLE_VERSIONS = (1, 2)  # of version 1, labelling and bound are used
_PREFIX = struct.Struct("<8sIQQ32s")  # magic, version, lengths of text and arrays, SHA-256
FILE_HINT = "name a file that --checkpoint or --certificate has written"
# Limit on memory when reading: a base, and more per byte of the file.
MAX_BASE_BYTES, MAX_BYTES_PER_FILE_BYTE = 1 << 28, 100
COMPRESSION_LEVEL = 1  # of zlib, the fastest: the run waits for it


@final
@dataclass(frozen=True, slots=True)
class ProblemFingerprint:
    """Identification of the problem of a checkpoint."""

    n_points: int
    n_features: int
    n_clusters: int
    data_sha256: str
    weights_sha256: str
    pairs_sha256: str
    code_sha256: str  # of the program that wrote it
    writer: str
    constraints_sha256: str = ""  # of constraints beside hard pairs; empty if there are none

    @classmethod
    def of(cls, problem: Problem) -> ProblemFingerprint:
        """Return the fingerprint of a problem, for this program."""
        return cls(
            problem.n_points,
            problem.n_features,
            problem.n_clusters,
            hash_points(problem.points),
            hash_points(problem.weights[:, None]),
            hash_pairs(problem.must_link, problem.cannot_link),
            code_sha256(),
            f"certikmeans {__version__}",
            hash_constraints(problem.other_arrays()),
        )

    def difference(self, other: ProblemFingerprint) -> str | None:
        """Return a clause that says how ``other`` differs, or None if it is the same problem."""
        shape, theirs = (self.n_points, self.n_features), (other.n_points, other.n_features)
        if shape != theirs:
            return (
                f"it is about {shape[0]} points of {shape[1]} features, "
                f"not {theirs[0]} of {theirs[1]}"
            )
        if self.n_clusters != other.n_clusters:
            return f"it is about {self.n_clusters} clusters, not {other.n_clusters}"
        if self.data_sha256 != other.data_sha256:
            return "it is about other data"
        if self.weights_sha256 != other.weights_sha256:
            return "it is about other weights"
        if self.pairs_sha256 != other.pairs_sha256:
            return "it is about other pairs"
        if self.constraints_sha256 != other.constraints_sha256:
            return "it is about other sets, sizes or soft pairs"
        return None

    def to_state(self) -> dict[str, Any]:
        """Return the fields; the last one only if it is not empty, as earlier programs expect."""
        state = {name: getattr(self, name) for name in ProblemFingerprint.__slots__}
        if not self.constraints_sha256:
            del state["constraints_sha256"]
        return state


@final
@dataclass(frozen=True, slots=True, eq=False)
class BestKnown:
    """Best labelling and best bound: valid for every version of the program and all options."""

    labels: NDArray[np.int64] | None
    iterations: int
    lower_bound: float
    bound_source: str
    nodes: int

    def to_state(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {
            "labels": self.labels,
            "iterations": self.iterations,
            "lower_bound": self.lower_bound,
            "bound_source": self.bound_source,
            "nodes": self.nodes,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> BestKnown:
        """Return the object of these fields; raises if they are not of the right kind."""
        labels = state["labels"]
        if labels is not None and not isinstance(labels, np.ndarray):
            raise TypeError("labels are not an array")
        return cls(
            labels,
            int(state["iterations"]),
            float(state["lower_bound"]),
            str(state["bound_source"]),
            int(state["nodes"]),
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Checkpoint:
    """Content of a checkpoint file."""

    fingerprint: ProblemFingerprint
    options: dict[str, Any]
    essence: BestKnown  # for every version of the program
    state: Any  # SolverSnapshot; None if another version of the program wrote it

    @property
    def same_code(self) -> bool:
        """Whether a program with the same sources wrote it."""
        return self.fingerprint.code_sha256 == code_sha256()


def encode(
    fingerprint: ProblemFingerprint, options: Options, essence: BestKnown, state: Any
) -> bytes:
    """Return the content of the file."""
    encoder = Encoder()
    document: dict[str, Any] = {
        "facts": fingerprint.to_state(),
        "options": options.to_dict(),
        "essence": encoder.encode(essence.to_state()),
        "state": encoder.encode(state),
    }
    document["objects"] = encoder.objects
    small = [smallest_dtype(np.ascontiguousarray(_rows_first(array))) for array in encoder.arrays]
    document["arrays"] = [
        [one.dtype.str, array.dtype.str, list(one.shape), _by_columns(array)]
        for one, array in zip(small, encoder.arrays, strict=True)
    ]
    text = json.dumps(document, allow_nan=False, separators=(",", ":")).encode()
    stream = zlib.compressobj(COMPRESSION_LEVEL)
    pieces = [stream.compress(text), *(stream.compress(one.tobytes()) for one in small)]
    body = b"".join([*pieces, stream.flush()])
    size = sum(one.nbytes for one in small)
    digest = hashlib.sha256(body).digest()
    return _PREFIX.pack(MAGIC, VERSION, len(text), size, digest) + body


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file; raises `InputError` if it cannot be read."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error


def check_magic(path: str | os.PathLike[str]) -> None:
    """Raise `InputError` if the first bytes are not of a checkpoint or a certificate."""
    try:
        with open(path, "rb") as file:
            start = file.read(len(MAGIC))
    except OSError as error:
        raise _unreadable(path, error) from error
    if start not in (MAGIC, CERTIFICATE_MAGIC):
        raise _neither(path)


def is_certificate(content: bytes) -> bool:
    """Whether the file is a certificate rather than a checkpoint."""
    return content.startswith(CERTIFICATE_MAGIC)


def decode(content: bytes, path: str | os.PathLike[str]) -> Checkpoint:
    """Read a checkpoint; raises `InputError` if it is damaged."""
    if len(content) < _PREFIX.size or not content.startswith(MAGIC):
        raise _neither(path)
    _, version, text_size, size, digest = _PREFIX.unpack_from(content)
    if version not in READABLE_VERSIONS:
        raise InputError(
            f"{path}: is a checkpoint of version {version}; "
            f"this program reads up to version {VERSION}",
            hint="resume with the program that wrote it",
        )
    body = memoryview(content)[_PREFIX.size :]
    if hashlib.sha256(body).digest() != digest:
        raise _damaged(path, "its checksum does not match")
    try:
        raw = _inflate(body, text_size + size, path)
        document = json.loads(raw[:text_size])
        arrays = _arrays(document["arrays"], memoryview(raw)[text_size:])
        fingerprint = ProblemFingerprint(**document["facts"])
        decoder = Decoder(document["objects"], arrays)
        essence = _decode_best(decoder, document, version)
        readable = fingerprint.code_sha256 == code_sha256()
        state = decoder.decode(document["state"]) if readable else None
        return Checkpoint(fingerprint, dict(document["options"]), essence, state)
    except InputError:
        raise
    except (zlib.error, UnsupportedTypeError, ValueError, TypeError, LookupError, AttributeError,
            ArithmeticError, RecursionError) as error:  # fmt: skip
        raise _damaged(path, f"{type(error).__name__}: {error}") from error


def _inflate(body: memoryview, size: int, path: str | os.PathLike[str]) -> bytes:
    """Decompress exactly ``size`` bytes; more than a file of this length can need is refused."""
    if size > MAX_BASE_BYTES + MAX_BYTES_PER_FILE_BYTE * len(body):
        raise _damaged(path, f"it says that it holds {size:,} bytes")
    stream = zlib.decompressobj()
    raw = stream.decompress(body, size + 1)
    if len(raw) != size or not stream.eof or stream.unused_data:
        raise _damaged(path, "it is shorter or longer than it says")
    return raw


def _decode_best(decoder: Decoder, document: dict[str, Any], version: int) -> BestKnown:
    """Incumbent and bound. In version 1 they are fields of a class that no longer exists."""
    if version > 1:
        return BestKnown.from_state(decoder.decode(document["essence"]))
    fields = document["objects"][document["essence"]["r"]]["v"]
    values = {name: decoder.decode(value) for name, value in fields.items()}
    for old, new in (("lower", "lower_bound"), ("source", "bound_source")):
        if old in values:
            values[new] = values.pop(old)
    return BestKnown.from_state(values)


def _arrays(layout: list[Any], payload: memoryview) -> list[NDArray[Any]]:
    arrays, position = [], 0
    for stored, kind, shape, by_columns in layout:
        count = int(np.prod(shape, dtype=np.int64))
        flat = np.frombuffer(payload, checked_dtype(stored), count, position)
        array = flat.astype(checked_dtype(kind)).reshape(shape)
        arrays.append(array.T if by_columns else array)
        position += flat.nbytes
    return arrays


def _by_columns(array: NDArray[Any]) -> bool:
    """Whether the array is in column order, which can change the rounding of products."""
    return array.ndim == 2 and abs(array.strides[0]) < abs(array.strides[1])


def _rows_first(array: NDArray[Any]) -> NDArray[Any]:
    return array.T if _by_columns(array) else array


def _unreadable(path: str | os.PathLike[str], error: OSError) -> InputError:
    return InputError(f"{path}: cannot be read ({error.strerror or error})", hint=FILE_HINT)


def _neither(path: str | os.PathLike[str]) -> InputError:
    return InputError(f"{path}: is neither a checkpoint nor a certificate", hint=FILE_HINT)


def _damaged(path: str | os.PathLike[str], why: str) -> InputError:
    return InputError(
        f"{path}: is damaged ({why})",
        hint="resume from an older checkpoint, or start again without it",
    )


@cache
def code_sha256() -> str:
    """SHA-256 of the sources of this package: other sources may compute differently."""
    folder = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
