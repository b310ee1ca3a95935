"""Tests of unusual directories: FIFOs, links, foreign names, a root that disappears, and directories that appear and
disappear.
"""

import os
import shutil
from pathlib import Path

import pytest

from estimator_core.errors import ArgumentError
from estimator_core.plugins import Component, Option, Plugins
from estimator_core.storage import (
    LocalStorage,
    ObjectMissingError,
    StorageDeniedError,
    StorageError,
    StorageGoneError,
    open_storage,
)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def storage(root):
    return LocalStorage(root)


def test_a_fifo_is_refused_and_not_waited_for(root, storage):
    os.mkfifo(root / "fifo")
    for call in (lambda: storage.get("fifo"), lambda: storage.get_ranges("fifo", [(0, 1)])):
        with pytest.raises(StorageError, match="fifo is not a plain file"):
            call()
    assert list(storage.list("")) == []


@pytest.mark.parametrize("links_a_directory", [False, True])
def test_a_link_out_of_the_root_is_not_followed(tmp_path, root, storage, links_a_directory):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x").write_text("theirs")
    if links_a_directory:
        (root / "a").symlink_to(tmp_path / "outside")
    else:
        (root / "a").mkdir()
        (root / "a" / "x").symlink_to(tmp_path / "outside" / "x")
    calls = (
        lambda: storage.get("a/x"),
        lambda: storage.get_ranges("a/x", [(0, 1)]),
        lambda: storage.put("a/x", b"ours"),
        lambda: storage.put_new("a/x", b"ours"),
        lambda: storage.put_stream("a/x", [b"ours"], size=4),
        lambda: storage.delete(["a/x"]),
    )
    for call in calls:
        with pytest.raises(StorageError, match="a/x is a link or below one"):
            call()
    assert list(storage.list("")) == []
    assert [path.read_text() for path in (tmp_path / "outside").iterdir()] == ["theirs"]


def test_a_root_behind_a_link_is_a_root(tmp_path, root):
    (tmp_path / "link").symlink_to(root)
    storage = LocalStorage(tmp_path / "link")
    storage.put("a/b", b"x")
    assert (root / "a" / "b").read_bytes() == b"x"
    assert [entry.key for entry in storage.list("a")] == ["a/b"]


def test_names_that_cannot_be_keys_are_not_listed(root, storage):
    for name in ("back\\slash", "ends.", "line\nbreak", ".draft-left", "fine"):
        (root / name).write_text("x")
    with open(os.fsencode(root) + b"/\xff\xfe", "w"):
        pass
    assert [entry.key for entry in storage.list("")] == ["fine"]
    with pytest.raises(ArgumentError, match=r"names that begin with '.draft-' belong to the storage"):
        storage.get(".draft-left")


def test_a_directory_is_no_object_and_below_a_file_is_none(storage):
    storage.put("a/b", b"x")
    with pytest.raises(ObjectMissingError):
        storage.get("a")
    storage.delete(["a/b/c"])
    with pytest.raises(ObjectMissingError):
        storage.get("a/b/c")
    for call in (lambda: storage.put("a", b""), lambda: storage.put("a/b/c", b"")):
        with pytest.raises(StorageError):
            call()
    assert [entry.key for entry in storage.list("")] == ["a/b"]


def test_a_root_removed_while_a_write_is_under_way_is_not_made_again(root, storage):
    def chunks():
        yield b"x"
        shutil.rmtree(root)
        yield b"y"

    with pytest.raises(StorageGoneError):
        storage.put_stream("a/b", chunks(), size=2)
    assert not root.exists()


def test_a_delete_that_empties_a_directory_does_not_break_a_write_into_it(storage, monkeypatch):
    make, lost = Path.mkdir, []

    def made_and_removed(directory, *arguments, **options):
        """Another delete finds the directory empty, twice, before a file is in it."""
        make(directory, *arguments, **options)
        if len(lost) < 2:
            lost.append(directory)
            directory.rmdir()

    monkeypatch.setattr(Path, "mkdir", made_and_removed)
    storage.put_new("leases/1/reader", b"x")
    assert len(lost) == 2
    assert storage.get("leases/1/reader") == b"x"


def test_an_unreadable_directory_is_not_an_empty_one(root, storage, monkeypatch):
    def refuses(path, *_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", refuses)
    with pytest.raises(StorageDeniedError, match="the root"):
        storage.list("")


def test_a_place_that_cannot_be_a_directory_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="cannot be used as a directory"):
        open_storage(tmp_path / "file")


@pytest.mark.parametrize("form", ["{}/typed/wrong", "file://{}/typed/wrong"])
def test_who_only_reads_makes_no_directory(tmp_path, form):
    with pytest.raises(StorageGoneError, match=f"There is no directory {tmp_path}/typed/wrong"):
        open_storage(form.format(tmp_path), make=False)
    assert list(tmp_path.iterdir()) == []
    assert open_storage(form.format(tmp_path)).url == open_storage(form.format(tmp_path), make=False).url


def test_a_file_url_is_a_path(tmp_path):
    storage = open_storage(f"FILE://{tmp_path}/run")
    assert storage.url == str(tmp_path / "run")


class Acme:
    ESTIMATOR_PLUGIN_API = (1, 0)

    def estimator_components(self):
        return [Component(kind="storage", name="acme_box", target="tests.storage.test_local_hostile:open_box")]

    def estimator_options(self):
        return [Option(name="lid", type=str, default="closed", help="A lid.")]


def open_box(url, *, options):
    class Box(LocalStorage):
        """A storage that keeps what it was opened with, and opens nothing."""

        def __init__(self):
            self.opened = url, dict(options)

    return Box()


def test_the_scheme_names_the_component_and_its_plugin_has_options():
    plugins = Plugins(autoload=False, extra=[Acme()], options={"Acme": {"lid": "open"}}, environ={})
    assert open_storage("acme-box://x/y", plugins).opened == ("acme-box://x/y", {"lid": "open"})


def test_an_unknown_scheme_is_refused_with_the_schemes_there_are():
    plugins = Plugins(autoload=False, extra=[Acme()], environ={})
    with pytest.raises(
        ArgumentError, match=r"no installed package provides storage for bax://. Known schemes: file://, acme-box://\."
    ):
        open_storage("bax://key:secret@x", plugins)


def test_a_scheme_of_the_house_names_its_package():
    plugins = Plugins(autoload=False, environ={})
    with pytest.raises(ArgumentError, match="estimator-storage") as caught:
        open_storage("s3://key:secret@bucket/run", plugins)
    assert "secret" not in str(caught.value)
