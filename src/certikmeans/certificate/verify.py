"""`certikmeans.check_certificate`: the verifier, for a file or its content."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from numpy.typing import ArrayLike

from certikmeans.certificate import check
from certikmeans.certificate.check import Verdict
from certikmeans.certificate.check_subdivision import Limits
from certikmeans.errors import InputError


def check_certificate(
    points: ArrayLike,
    content: bytes | str | os.PathLike[str] | IO[bytes],
    *,
    must_link: ArrayLike | None = None,
    cannot_link: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    n_clusters: int | None = None,
    constraints: Mapping[str, ArrayLike] | None = None,
    limits: Limits | None = None,
) -> Verdict:
    """Accept or reject a certificate; whatever it holds, no exception is raised.

    Parameters
    ----------
    points : array-like of shape (n_points, n_features)
        The rows, read from a trusted source.
    content : path-like, bytes or binary file
        The certificate: the name of its file, its content, or an open file.
    must_link, cannot_link, weights : array-like, optional
        If given, the certificate must be about exactly these (pairs in any order).
    n_clusters : int, optional
        If given, the certificate must be about this number of clusters.
    constraints : mapping, optional
        If given, the certificate must be about exactly these constraints beside hard pairs: arrays
        by name, as `Problem.other_arrays` returns them; empty if there are none.
    limits : Limits, optional
        Amount of work after which the result is `Reason.LIMIT`.

    Returns
    -------
    Verdict
        True in a condition if, and only if, the certificate is accepted.

    Raises
    ------
    InputError
        There is no such file, or ``content`` is neither a file nor bytes.
    """
    return check.check_certificate(
        points,
        read_content(content),
        must_link=must_link,
        cannot_link=cannot_link,
        weights=weights,
        n_clusters=n_clusters,
        constraints=constraints,
        limits=limits,
    )


def read_content(content: Any) -> bytes:
    """Return the bytes of a certificate given by path, as bytes or as an open file.

    >>> read_content(bytearray(b"CKM"))
    b'CKM'
    """
    if isinstance(content, bytes | bytearray | memoryview):
        return bytes(content)
    hint = "pass the path of a file that write_certificate wrote, or its content as bytes"
    if isinstance(content, str | os.PathLike):
        try:
            return Path(content).read_bytes()
        except (OSError, ValueError) as error:  # a null character in the name
            reason = getattr(error, "strerror", None) or str(error)
            raise InputError(
                f"certificate: {str(content)[:200]} cannot be read ({reason})", hint=hint
            ) from error
    if hasattr(content, "read"):
        found = content.read()
        if isinstance(found, bytes):
            return found
        raise InputError(
            "certificate: the file was opened as text", hint="open it as open(path, 'rb')"
        )
    raise InputError(
        f"certificate: expected a path, bytes or a file, got {type(content).__name__}", hint=hint
    )
