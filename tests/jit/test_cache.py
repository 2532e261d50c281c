"""Where compiled kernels go when they cannot be kept where they belong."""

from __future__ import annotations

import os
import stat

import pytest

from certikmeans._jit import cache
from certikmeans.errors import CacheWarning


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """Nothing can be written but the temporary directory."""
    from numba.core import config

    monkeypatch.setattr(config, "CACHE_DIR", "")
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")
    monkeypatch.setattr(cache, "_can_write", lambda directory: False)
    monkeypatch.setattr(cache.tempfile, "gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr(cache.tempfile, "tempdir", str(tmp_path))
    cache.ensure_cache.cache_clear()
    yield config
    cache.ensure_cache.cache_clear()


def test_a_private_directory_and_one_warning(nowhere, tmp_path):
    with pytest.warns(CacheWarning, match="NUMBA_CACHE_DIR") as told:
        cache.ensure_cache()
    cache.ensure_cache()  # said once
    assert len(told) == 1
    (place,) = tmp_path.iterdir()
    assert nowhere.CACHE_DIR == os.environ["NUMBA_CACHE_DIR"] == str(place)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700


def test_a_directory_that_others_can_write_is_not_trusted(nowhere, tmp_path):
    planted = cache._temporary_directory()
    planted.chmod(0o777)
    assert cache._temporary_directory() != planted


def test_a_link_is_not_followed(nowhere, tmp_path):
    place = cache._temporary_directory()
    place.rmdir()
    (tmp_path / "elsewhere").mkdir()
    place.symlink_to(tmp_path / "elsewhere")
    assert cache._temporary_directory() not in (place, tmp_path / "elsewhere")


def test_a_directory_that_was_asked_for_and_cannot_be_written_is_named(nowhere):
    nowhere.CACHE_DIR = "/asked/for"
    with pytest.warns(CacheWarning, match="/asked/for cannot be written"):
        cache.ensure_cache()


def test_nothing_is_said_where_there_is_a_place(monkeypatch, recwarn):
    cache.ensure_cache.cache_clear()
    cache.ensure_cache()
    assert not [one for one in recwarn if one.category is CacheWarning]
