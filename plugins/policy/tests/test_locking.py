"""Tests that a lock is written completely or not at all."""

import errno
from pathlib import Path

import pytest

from estimator_core.plugins import Plugins
from estimator_policy import write_lock
from estimator_policy.locking import may_be_replaced


def test_a_full_disk_leaves_the_lock_that_was_there(tmp_path, monkeypatch):
    file = tmp_path / "plugins.lock"
    write_lock(file, Plugins(autoload=False).versions())
    before, write = file.read_text(), Path.write_text

    def full(path, text, **how):
        write(path, text[: len(text) // 2], **how)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space left"):
        write_lock(file, [])
    assert file.read_text() == before
    assert may_be_replaced(file)
    assert [path.name for path in tmp_path.iterdir()] == ["plugins.lock"]


def test_a_link_to_a_lock_stays_a_link(tmp_path):
    shared, link = tmp_path / "shared.lock", tmp_path / "plugins.lock"
    link.symlink_to(shared)
    write_lock(link, [])
    assert link.is_symlink()
    assert shared.is_file()
