"""Files with given content."""

from __future__ import annotations

import pytest


@pytest.fixture
def write(tmp_path):
    def write(content, name="pairs.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
