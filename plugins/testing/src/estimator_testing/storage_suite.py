"""The suite for storages."""

from __future__ import annotations

import contextlib
import logging
import subprocess
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, ClassVar

import pytest

from estimator_core.errors import ArgumentError
from estimator_core.storage import (
    ObjectExistsError,
    ObjectMissingError,
    OutcomeUnknownError,
    ShortReadError,
    Storage,
    StorageError,
    StorageGoneError,
)
from estimator_testing import storage_writers
from estimator_testing.losing_proxy import LosingProxy
from estimator_testing.suite import Suite

THREADS, PROCESSES = 16, 4
ODD_NAMES = (
    "with space",
    " at the ends ",
    "per%20cent",
    "100%",
    "a+b&c=d;e,f",
    "what?#fragment",
    "'quoted\"",
    "<t>[*]{~}^`|:@$!",
    "\u00fc\u65e5\u672c\U0001f600",
    "e\u0301",
    ".hidden/..dots",
    "UPPER/lower",
    "/".join(["n" * 99] * 9),
)
NO_KEYS = ("", "/", "/etc", "a//b", "a/", ".", "..", "../a", "a/../b", "a/./b", "a.", "a\\b", "a\nb", "\x00", "x" * 901)
#: A size in bytes that needs more than three parts in an upload to any store.
STREAM = 3 * (8 << 20) + 1


class StorageSuite(Suite):
    """Proves that a storage keeps its contract: a conditional write has one winner; nothing is partial, lost or leaked.

    Subclass it, and implement `location`, `remove_root` and `beside`. With `server`, also implement `open_through`.

    Attributes:
        opens: the `module:name` of the function that opens a location. Other processes import it too.
        secrets: the keys and passwords of the tests, which no text may show.
        many: the number of objects for the test of lists: more than two pages of a store's lists.

    Example:
        >>> class TestDirectory(StorageSuite):
        ...     def location(self, folder):
        ...         return str(folder / "root")
        ...
        ...     def remove_root(self, location):
        ...         shutil.rmtree(location)
        ...
        ...     def beside(self, location):
        ...         return [path.name for path in Path(location).parent.iterdir() if path != Path(location)]
    """

    opens: ClassVar[str] = "estimator_core.storage:open_storage"
    secrets: ClassVar[tuple[str, ...]] = ()
    many: ClassVar[int] = 2_500

    def location(self, folder: Path) -> str:
        """Returns an empty path or URL. The directory or bucket exists once it is opened."""
        raise NotImplementedError(f"{type(self).__name__} must define location(self, folder)")

    def remove_root(self, location: str) -> None:
        """Removes the directory or the bucket with all its content, without the storage."""
        raise NotImplementedError(f"{type(self).__name__} must define remove_root(self, location)")

    def beside(self, location: str) -> Collection[str]:
        """Returns the names of everything else in the directory or bucket around the root."""
        raise NotImplementedError(f"{type(self).__name__} must define beside(self, location)")

    def server(self) -> tuple[str, int] | None:
        """Returns the host and port of its server, or None if there is none."""
        return None

    def open_through(self, location: str, address: str) -> Storage:
        """Returns the storage at a location, with its server at `address`, `host:port`."""
        raise NotImplementedError(f"{type(self).__name__} must define open_through(self, location, address)")

    @pytest.fixture
    def where(self, tmp_path: Path) -> str:
        """Returns an empty location."""
        return self.location(tmp_path)

    @pytest.fixture
    def storage(self, where: str) -> Iterator[Storage]:
        """Yields the storage there."""
        storage = storage_writers.opened(self.opens, where)
        yield storage
        storage.close()

    def test_is_a_storage(self, storage: Storage) -> None:
        """It has the methods of Storage and a URL. A second close does nothing."""
        assert isinstance(storage, Storage), f"{storage!r} lacks a method of Storage"
        assert storage.url
        assert list(storage.list("")) == [], "the location is not empty"
        storage.close()
        storage.close()

    def test_what_is_written_is_read(self, storage: Storage) -> None:
        """Bytes are read as they were written, also by another object of the same place. An absent key is missing."""
        every_byte = bytes(range(256)) * 40
        for key, data in {"a": every_byte, "b/c": b"", "b/d": b"\0"}.items():
            storage.put_new(key, data)
            assert bytes(storage.get(key)) == data
        storage.put("a", b"other")
        storage.put("new", b"x")
        again = storage_writers.opened(self.opens, storage.url)
        assert (bytes(again.get("a")), bytes(again.get("new"))) == (b"other", b"x")
        again.close()
        for absent in ("absent", "b", "b/e", "b/c/d"):
            with pytest.raises(ObjectMissingError, match=absent):
                storage.get(absent)

    def test_put_new_keeps_what_is_there(self, storage: Storage) -> None:
        """A second put_new of a key is refused, even for another writer, and the bytes stay. A delete frees the key."""
        storage.put_new("one", b"first")
        storage.put("two", b"first")
        for key in ("one", "two"):
            for data in (b"second", b"first"):
                with pytest.raises(ObjectExistsError, match=key):
                    storage.put_new(key, data)
            assert bytes(storage.get(key)) == b"first"
        storage.delete(["one"])
        storage.put_new("one", b"third")
        assert bytes(storage.get("one")) == b"third"

    def test_one_of_16_threads_wins(self, storage: Storage) -> None:
        """Of 16 simultaneous put_new calls one returns, and the object has its bytes."""
        with ThreadPoolExecutor(THREADS) as pool:
            for key in (f"race/{number}" for number in range(8)):
                won = list(pool.map(_wins, [storage] * THREADS, [key] * THREADS, range(THREADS)))
                assert won.count(True) == 1, f"{won.count(True)} of {THREADS} put_new of {key} returned"
                assert bytes(storage.get(key)) == b"%d" % won.index(True)

    def test_one_of_4_processes_wins(self, where: str, storage: Storage) -> None:
        """When 4 processes create the same objects, each object is created once, with the bytes of its creator."""
        with self._children(where, ["races"] * PROCESSES) as children:
            won = {child.pid: _output(child).read().split() for child in children}
        assert sorted(int(number) for numbers in won.values() for number in numbers) == list(
            range(storage_writers.RACES)
        )
        for pid, numbers in won.items():
            assert all(bytes(storage.get(f"races/{number}")) == b"%d" % pid for number in numbers)

    def test_a_lost_answer_is_never_a_wrong_one(self, where: str) -> None:
        """A put_new whose answer is lost returns, or raises OutcomeUnknownError. Other calls recover."""
        server = self.server()
        if server is None:
            pytest.skip("it talks to no server")
        storage_writers.opened(self.opens, where).close()
        with LosingProxy(*server) as proxy:
            storage = self.open_through(where, proxy.address)
            storage.put_new("first", b"x")
            for number in range(3):
                proxy.lose(1)
                try:
                    storage.put_new(f"new/{number}", b"%d" % number)
                except OutcomeUnknownError:
                    with pytest.raises(ObjectExistsError):
                        storage.put_new(f"new/{number}", b"%d" % number)
                assert bytes(storage.get(f"new/{number}")) == b"%d" % number
            calls: list[Callable[[], object]] = [
                lambda: storage.put("put", b"1"),
                lambda: storage.put_stream("stream", [b"1", b"2"], size=2),
                lambda: storage.get("first"),
                lambda: storage.get_ranges("first", [(0, 1)]),
                lambda: list(storage.list("")),
                lambda: storage.delete(["first"]),
            ]
            for number, call in enumerate(calls, 4):
                proxy.lose(1)
                call()
                assert proxy.lost == number, "no answer was lost: it does not talk to the address it was given"
            assert sorted(entry.key for entry in storage.list("")) == ["new/0", "new/1", "new/2", "put", "stream"]
            storage.close()

    def test_a_kill_leaves_whole_objects(self, where: str, storage: Storage) -> None:
        """Objects of processes that were killed during a write are whole or absent, and nothing else is listed."""
        with self._children(where, ["singles", "streams"]) as children:
            for number, child in enumerate(children):
                written = [_output(child).readline() for _ in range(2)]
                assert all(written), "it ended before it was killed"
                time.sleep(0.01 * (number + 1))  # long enough for the next write to begin
                child.kill()
        time.sleep(0.2)  # a request of a killed process may still be pending
        for entry in list(storage.list("")):
            kind, _, number = entry.key.partition("/")
            data = bytes(storage.get(entry.key))
            if kind == "singles":
                assert data == storage_writers.content(int(number)), f"{entry.key} is torn: {len(data)} bytes"
            else:
                whole = len(data) == storage_writers.STREAMED and data == data[:10] * (len(data) // 10)
                assert kind == "streams", f"{entry.key} is listed, but nobody wrote it"
                assert whole, f"{entry.key} is torn: {len(data)} bytes"

    def test_lists_see_what_has_just_happened(self, storage: Storage) -> None:
        """Many objects (2,500) are listed immediately, sorted, with sizes and times. Deleted ones are not listed."""
        keys = [f"{'ab'[number % 2]}/{number % 7}/{number}" for number in range(self.many)]
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(lambda key: storage.put(key, key.encode()), keys))
        listed = list(storage.list(""))
        assert [entry.key for entry in listed] == sorted(keys)
        assert all(entry.size == len(entry.key) for entry in listed)
        assert abs(max(entry.modified for entry in listed) - storage.now()) < 60
        storage.delete(key for key in keys if key.startswith("a/"))
        assert [entry.key for entry in storage.list("")] == sorted(key for key in keys if key.startswith("b/"))
        assert list(storage.list("a")) == []
        assert [entry.key for entry in storage.list("b/3")] == sorted(key for key in keys if key.startswith("b/3/"))

    def test_a_prefix_is_whole_parts(self, storage: Storage) -> None:
        """A list of `a/1` holds the keys below `a/1`, and not `a/10`. A list without matches is empty."""
        for key in ("a/1/x", "a/10/x", "a/1x", "b"):
            storage.put(key, b"")
        assert [entry.key for entry in storage.list("a/1")] == ["a/1/x"]
        assert [entry.key for entry in storage.list("a")] == ["a/1/x", "a/10/x", "a/1x"]
        assert [entry.key for prefix in ("b", "c", "a/1/x") for entry in storage.list(prefix)] == []

    def test_a_delete_removes_its_keys_alone(self, storage: Storage) -> None:
        """Keys that begin like a deleted one stay."""
        for key in ("a", "ab", "b/1", "b/10", "b/1x/y"):
            storage.put(key, b"")
        storage.delete(["a", "b/1"])
        assert [entry.key for entry in storage.list("")] == ["ab", "b/10", "b/1x/y"]

    def test_odd_names(self, storage: Storage) -> None:
        """Names with spaces, signs or other scripts, and long names, are separate objects under their own names."""
        for number, name in enumerate(ODD_NAMES):
            storage.put_new(name, b"%d" % number)
        assert [entry.key for entry in storage.list("")] == sorted(ODD_NAMES)
        for number, name in enumerate(ODD_NAMES):
            assert bytes(storage.get(name)) == b"%d" % number, name
        storage.delete(ODD_NAMES)
        assert list(storage.list("")) == []

    def test_what_is_no_key_is_refused(self, where: str, storage: Storage) -> None:
        """`..`, absolute keys, and keys that some store does not support, are refused. Nothing is written beside the
        root.
        """
        before = set(self.beside(where))
        storage.put("a/b", b"")
        calls: list[Callable[[str], object]] = [
            lambda key: storage.put_new(key, b""),
            lambda key: storage.put(key, b""),
            lambda key: storage.put_stream(key, [], size=0),
            lambda key: storage.get(key),
            lambda key: storage.get_ranges(key, []),
            lambda key: storage.delete([key]),
            lambda key: list(storage.list(key)) if key else storage.get(key),
        ]
        for key in NO_KEYS:
            for call in calls:
                with pytest.raises(ArgumentError):
                    call(key)
        assert [entry.key for entry in storage.list("")] == ["a/b"]
        assert set(self.beside(where)) == before

    def test_ranges(self, storage: Storage) -> None:
        """Ranges may overlap, be empty, and come in any order. Ranges beyond the end or of no object are refused."""
        data = bytes(range(256)) * 64
        size = len(data)
        storage.put("data", data)
        storage.put("empty", b"")
        ranges = [(size - 1, size), (0, 1), (0, size), (5, 5), (100, 300), (200, 400), (0, 0), (size, size)]
        found = storage.get_ranges("data", ranges)
        assert [bytes(part) for part in found] == [data[begin:end] for begin, end in ranges]
        assert storage.get_ranges("data", []) == []
        assert [bytes(part) for part in storage.get_ranges("empty", [(0, 0)])] == [b""]
        for begin, end in ((size - 1, size + 1), (size, size + 1), (size + 5, size + 9), (0, 2 * size)):
            with pytest.raises(ShortReadError, match="data"):
                storage.get_ranges("data", [(0, 1), (begin, end)])
        with pytest.raises(ShortReadError):
            storage.get_ranges("empty", [(0, 1)])
        for wrong in ((3, 2), (-1, 2)):
            with pytest.raises(ArgumentError):
                storage.get_ranges("data", [wrong])
        for asked in ([(0, 1)], [(0, 0)], [(0, 1), (0, 0)]):
            with pytest.raises(ObjectMissingError, match="absent"):
                storage.get_ranges("absent", asked)

    def test_streams(self, storage: Storage) -> None:
        """Streams without bytes, of one byte and of several parts are stored whole, with chunks of any size."""
        whole = bytes(range(251)) * (STREAM // 251 + 1)
        for size, chunk in ((0, 1), (1, 1), (100_000, 999), (STREAM, 1_234_567), (STREAM, STREAM)):
            data = memoryview(whole)[:size]
            storage.put_stream("stream", (data[at : at + chunk] for at in range(0, size, chunk)), size=size)
            assert [entry.size for entry in storage.list("")] == [size]
            assert storage.get("stream") == data
            middle = [(size // 3, size - size // 3), (0, size)]
            assert [bytes(part) for part in storage.get_ranges("stream", middle)] == [
                bytes(data[begin:end]) for begin, end in middle
            ]
        storage.put_stream("kinds", iter([b"1", bytearray(b"2"), b"", memoryview(b"3")]), size=3)
        assert bytes(storage.get("kinds")) == b"123"

    @pytest.mark.parametrize("size", [10, STREAM])
    def test_a_stream_that_fails_changes_nothing(self, storage: Storage, size: int) -> None:
        """After too few bytes, too many, or an error of their source, the object stays, and the error is raised."""
        storage.put("stream", b"before")
        for given in (size - 1, size + 1):
            with pytest.raises(StorageError, match=str(size)):
                storage.put_stream("stream", _chunks(given), size=size)
        for key in ("stream", "new"):
            with pytest.raises(_OfTheCallerError, match="in the middle"):
                storage.put_stream(key, _breaking(size - 1), size=size)
        assert [entry.key for entry in storage.list("")] == ["stream"]
        assert bytes(storage.get("stream")) == b"before"

    def test_delete_twice(self, storage: Storage) -> None:
        """An absent key is deleted without an error, alone and among others. Other objects stay."""
        for key in ("a", "b/c", "b/d"):
            storage.put(key, b"")
        storage.delete(["a", "absent", "b/absent", "b/c"])
        storage.delete(["a"])
        storage.delete([])
        assert [entry.key for entry in storage.list("")] == ["b/d"]
        storage.put("b/c", b"again")
        assert bytes(storage.get("b/c")) == b"again"

    def test_its_clock_is_that_of_its_lists(self, storage: Storage) -> None:
        """A listed time lies between `now()` before and after the write. `now()` leaves no object."""
        before = storage.now()
        storage.put("a", b"")
        (entry,) = storage.list("")
        assert before - 1 <= entry.modified <= storage.now() + 1
        assert [entry.key for entry in storage.list("")] == ["a"]

    def test_a_removed_root_is_gone(self, where: str, storage: Storage) -> None:
        """After the directory or bucket is removed, every call reports it, and no call creates it again."""
        storage.put("a", b"")
        self.remove_root(where)
        calls: list[Callable[[], object]] = [
            lambda: storage.put_new("b", b""),
            lambda: storage.put("b", b""),
            lambda: storage.put_stream("b", [b"x"], size=1),
            lambda: storage.get("a"),
            lambda: storage.get_ranges("a", [(0, 1)]),
            lambda: list(storage.list("")),
            lambda: storage.now(),
        ]
        for _ in range(2):
            for call in calls:
                with pytest.raises(StorageGoneError):
                    call()

    def test_threads_share_it(self, storage: Storage) -> None:
        """Of sixteen threads that write, read, list and delete at once, each sees its own objects."""

        def work(thread: int) -> None:
            for number in range(5):
                key, data = f"t{thread}/{number}", b"%d" % thread * 5_000
                storage.put_stream(key, [data], size=len(data))
                assert bytes(storage.get(key)) == data
                assert [bytes(part) for part in storage.get_ranges(key, [(1, 9)])] == [data[1:9]]
                assert [entry.key for entry in storage.list(f"t{thread}")] == [key]
                storage.delete([key])

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(work, range(THREADS)))
        assert list(storage.list("")) == []

    def test_nothing_secret_shows(self, where: str, caplog: pytest.LogCaptureFixture) -> None:
        """Its repr, its url, its errors and its log do not contain a key or a password."""
        with caplog.at_level(logging.DEBUG):
            storage = storage_writers.opened(self.opens, where)
            storage.put_new("a", b"")
        texts = [repr(storage), str(storage), storage.url]
        self.remove_root(where)
        for call in (lambda: storage.get("a"), lambda: storage.put_new("a", b""), lambda: storage.put("b", b"")):
            with caplog.at_level(logging.DEBUG), pytest.raises(StorageError) as caught:
                call()
            texts += list(_said(caught.value))
        storage.close()
        for secret in self.secrets:
            shown = [text for text in (*texts, caplog.text) if secret in text]
            assert not shown, f"a secret is shown in {shown[0][:200]!r}"

    @contextlib.contextmanager
    def _children(self, where: str, work: Iterable[str]) -> Generator[list[subprocess.Popen[str]]]:
        """Starts processes that begin together, and ends them with the block."""
        children = [storage_writers.start(self.opens, where, what) for what in work]
        try:
            for child in children:
                assert _output(child).readline() == "ready\n", "it does not start; see its standard error"
            for child in children:
                assert child.stdin is not None
                child.stdin.write("go\n")
                child.stdin.flush()
            yield children
        finally:
            for child in children:
                child.kill()
                child.wait()
                for stream in (child.stdin, child.stdout):
                    assert stream is not None
                    stream.close()


def _output(child: subprocess.Popen[str]) -> IO[str]:
    assert child.stdout is not None
    return child.stdout


class _OfTheCallerError(Exception):
    """An error of the caller's own iterator."""


def _wins(storage: Storage, key: str, writer: int) -> bool:
    try:
        storage.put_new(key, b"%d" % writer)
    except ObjectExistsError:
        return False
    return True


def _chunks(size: int) -> Iterator[bytes]:
    chunk = bytes(1 << 20)
    for at in range(0, size, len(chunk)):
        yield chunk[: size - at]


def _breaking(size: int) -> Iterator[bytes]:
    yield from _chunks(size)
    raise _OfTheCallerError("in the middle")


def _said(error: BaseException | None) -> Iterator[str]:
    """Yields the texts of an error and of its causes."""
    while error is not None:
        yield f"{error!r} {error}"
        error = error.__cause__ or error.__context__
