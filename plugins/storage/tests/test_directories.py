"""Tests of directories that move between this machine and a storage completely or not at all."""

import os
from pathlib import Path

import pytest

from estimator_core.errors import ArgumentError
from estimator_core.storage import Entry, LocalStorage, ObjectMissingError, ShortReadError, StorageError
from estimator_storage.at_urls.directories import download_directory, upload_directory


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    (tmp_path / "there").mkdir()
    return LocalStorage(tmp_path / "there")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    here = tmp_path / "here"
    (here / "arrays" / "deep").mkdir(parents=True)
    (here / "manifest.json").write_bytes(b"{}")
    (here / "empty").write_bytes(b"")
    (here / "arrays" / "deep" / "large").write_bytes(os.urandom(17 << 20))
    (here / "a name with spaces, ü and %").write_bytes(b"x")
    return here


def contents(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def test_a_directory_comes_back_as_it_was(storage, here, tmp_path):
    keys = upload_directory(storage, "data/one", here)
    assert keys == sorted(f"data/one/{name}" for name in contents(here))
    back = download_directory(storage, "data/one", tmp_path / "back")
    assert contents(back) == contents(here)


def test_what_makes_a_directory_count_is_written_last(here, tmp_path):
    written = []

    class Notes(LocalStorage):
        def put_stream(self, key, chunks, *, size):
            super().put_stream(key, chunks, size=size)
            written.append(key)

    (tmp_path / "there").mkdir()
    upload_directory(Notes(tmp_path / "there"), "one", here, last="manifest.json")
    assert written[-1] == "one/manifest.json"
    assert len(written) == 4


def test_nothing_appears_where_a_read_fails(storage, here, tmp_path):
    upload_directory(storage, "one", here)

    class Fails(LocalStorage):
        def get_ranges(self, key, ranges):
            if ranges[0][0] > 0:
                raise ShortReadError("cut short")
            return super().get_ranges(key, ranges)

    with pytest.raises(StorageError, match="cut short"):
        download_directory(Fails(tmp_path / "there"), "one", tmp_path / "back")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here", "there"]


def test_a_prefix_without_objects_is_missing(storage, tmp_path):
    storage.put("one-more/file", b"")
    with pytest.raises(ObjectMissingError, match="nothing below one"):
        download_directory(storage, "one", tmp_path / "back")


def test_a_store_cannot_make_us_write_elsewhere(tmp_path):
    class Hostile(LocalStorage):
        def list(self, prefix):
            return iter([Entry(key="one/../../escaped", size=1, modified=0.0)])

        def get_ranges(self, key, ranges):
            return [b"x"]

    (tmp_path / "there").mkdir()
    with pytest.raises(ArgumentError, match="is not a key"):
        download_directory(Hostile(tmp_path / "there"), "one", tmp_path / "a" / "back")
    assert not (tmp_path / "escaped").exists()


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("/etc/hostname"), lambda path: os.mkfifo(path)])
def test_links_and_fifos_are_not_copied(storage, here, make):
    make(here / "odd")
    with pytest.raises(ArgumentError, match="odd is not a plain file"):
        upload_directory(storage, "one", here)
    assert list(storage.list("")) == []
