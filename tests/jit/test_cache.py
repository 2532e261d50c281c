"""Choice of the cache directory."""

from __future__ import annotations

import os
import stat

import pytest

from certikmeans._jit import cache
from certikmeans.errors import CacheWarning


@pytest.fixture
def read_only(monkeypatch, tmp_path):
    """Only the temporary directory is writable."""
    from numba.core import config

    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.setattr(cache, "_can_write", lambda directory: False)
    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(cache.tempfile, "tempdir", str(tmp_path))
    cache.ensure_cache.cache_clear()
    yield config
    cache.ensure_cache.cache_clear()


def test_private_directory_and_warning(read_only, tmp_path):
    with pytest.warns(CacheWarning, match="NUMBA_CACHE_DIR") as caught:
        cache.ensure_cache()
    cache.ensure_cache()  # no second warning
    assert len(caught) == 1
    (directory,) = tmp_path.iterdir()
    assert read_only.CACHE_DIR == os.environ["NUMBA_CACHE_DIR"] == str(directory)
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_world_writable_directory_is_rejected(read_only, tmp_path):
    planted = cache._temporary_directory()
    planted.chmod(0o777)
    assert cache._temporary_directory() != planted


def test_symlink_is_rejected(read_only, tmp_path):
    directory = cache._temporary_directory()
    directory.rmdir()
    (tmp_path / "elsewhere").mkdir()
    directory.symlink_to(tmp_path / "elsewhere")
    assert cache._temporary_directory() not in (directory, tmp_path / "elsewhere")


def test_unwritable_requested_directory(read_only):
    read_only.CACHE_DIR = "/not/writable"
    with pytest.warns(CacheWarning, match="/not/writable cannot be written"):
        cache.ensure_cache()


def test_no_warning_if_writable(monkeypatch, recwarn):
    cache.ensure_cache.cache_clear()
    cache.ensure_cache()
    assert not [one for one in recwarn if one.category is CacheWarning]
