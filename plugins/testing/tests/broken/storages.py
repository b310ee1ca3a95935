"""Storages that break their contract, each in one way; `fails` names the tests that catch it."""

import contextlib
import json
import shutil
import socket
import socketserver
import threading
import time
from pathlib import Path

from estimator_core.storage import LocalStorage, ObjectExistsError, ObjectMissingError, StorageGoneError
from estimator_core.testing import StorageSuite


class Here(LocalStorage):
    """A sound storage, whose directory is made when it is opened."""

    def __init__(self, location):
        Path(location).mkdir(parents=True, exist_ok=True)
        super().__init__(location)


class Suite(StorageSuite):
    fails = ()
    many = 60

    def location(self, folder):
        return str(folder / "outer" / "root")

    def remove_root(self, location):
        shutil.rmtree(location)

    def beside(self, location):
        root = Path(location)
        return [str(path) for path in root.parent.parent.rglob("*") if root not in (path, *path.parents)]


def opens(cls):
    return f"plugins.testing.tests.broken.storages:{cls.__name__}"


class HasNoClock(Here):
    now = None


class TestHasNoClock(Suite):
    fails = ("test_is_a_storage",)
    opens = opens(HasNoClock)


class CutsZeros(Here):
    def get(self, key):
        return super().get(key).rstrip(b"\0")


class TestCutsZeros(Suite):
    fails = ("test_what_is_written_is_read",)
    opens = opens(CutsZeros)


class MissesNothing(Here):
    def get(self, key):
        try:
            return super().get(key)
        except ObjectMissingError:
            return b""


class TestMissesNothing(Suite):
    fails = ("test_what_is_written_is_read",)
    opens = opens(MissesNothing)


class Overwrites(Here):
    def put_new(self, key, data):
        self.put(key, data)


class TestOverwrites(Suite):
    fails = ("test_put_new_keeps_what_is_there", "test_one_of_16_threads_wins", "test_one_of_4_processes_wins")
    opens = opens(Overwrites)


class LooksThenWrites(Here):
    def put_new(self, key, data):
        with contextlib.suppress(ObjectMissingError):
            self.get(key)
            raise ObjectExistsError(f"{key} exists")
        time.sleep(0.03)
        self.put(key, data)


class TestLooksThenWrites(Suite):
    fails = ("test_one_of_16_threads_wins", "test_one_of_4_processes_wins")
    opens = opens(LooksThenWrites)


class TriesAgain(Here):
    """Asks a server to create objects, and repeats the request if the answer is lost. Then it finds its own object."""

    address = ("", 0)

    def put_new(self, key, data):
        while True:
            with socket.create_connection(self.address) as connection, contextlib.suppress(ConnectionError):
                connection.sendall(json.dumps([self.url, key, data.decode()]).encode() + b"\n")
                if answer := connection.makefile().readline():
                    break
        if answer.strip() == "exists":
            raise ObjectExistsError(f"{key} exists")


class Creates(socketserver.StreamRequestHandler):
    def handle(self):
        url, key, data = json.loads(self.rfile.readline())
        try:
            LocalStorage(url).put_new(key, data.encode())
        except ObjectExistsError:
            self.wfile.write(b"exists\n")
        else:
            self.wfile.write(b"created\n")


class TestTriesAgain(Suite):
    fails = ("test_a_lost_answer_is_never_a_wrong_one",)
    opens = opens(TriesAgain)

    def server(self):
        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Creates)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server.server_address

    def open_through(self, location, address):
        storage = TriesAgain(location)
        host, _, port = address.partition(":")
        storage.address = (host, int(port))
        return storage


class WritesInPlace(Here):
    def put_new(self, key, data):
        path = Path(self.url, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "xb", buffering=0) as file:
            file.write(data[: len(data) // 2])
            time.sleep(0.2)
            file.write(data[len(data) // 2 :])

    def put_stream(self, key, chunks, *, size):
        path = Path(self.url, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb", buffering=0) as file:
            for chunk in chunks:
                file.write(chunk)


class TestWritesInPlace(Suite):
    fails = ("test_a_kill_leaves_whole_objects", "test_a_stream_that_fails_changes_nothing")
    opens = opens(WritesInPlace)


class ListsLate(Here):
    def list(self, prefix):
        return iter(list(super().list(prefix))[:-1])


class TestListsLate(Suite):
    fails = ("test_lists_see_what_has_just_happened",)
    opens = opens(ListsLate)


class ListsByText(Here):
    def list(self, prefix):
        return (entry for entry in super().list("") if entry.key.startswith(prefix))


class TestListsByText(Suite):
    fails = ("test_a_prefix_is_whole_parts",)
    opens = opens(ListsByText)


class DeletesByText(Here):
    def delete(self, keys):
        super().delete([entry.key for key in keys for entry in self.list("") if entry.key.startswith(key)])


class TestDeletesByText(Suite):
    fails = ("test_a_delete_removes_its_keys_alone",)
    opens = opens(DeletesByText)


class FoldsNames(Here):
    def put_new(self, key, data):
        super().put_new(key.lower(), data)


class TestFoldsNames(Suite):
    fails = ("test_odd_names",)
    opens = opens(FoldsNames)


class FollowsDots(Here):
    def _path(self, key):
        return self._root / key


class TestFollowsDots(Suite):
    fails = ("test_what_is_no_key_is_refused",)
    opens = opens(FollowsDots)


class RangesCutShort(Here):
    def get_ranges(self, key, ranges):
        data = self.get(key)
        return [data[begin:end] for begin, end in ranges]


class TestRangesCutShort(Suite):
    fails = ("test_ranges",)
    opens = opens(RangesCutShort)


class KeepsThreeParts(Here):
    def put_stream(self, key, chunks, *, size):
        self.put(key, b"".join(chunks)[: 3 * (8 << 20)])


class TestKeepsThreeParts(Suite):
    fails = ("test_streams",)
    opens = opens(KeepsThreeParts)


class DeletesOnce(Here):
    def delete(self, keys):
        for key in keys:
            self.get(key)
            super().delete([key])


class TestDeletesOnce(Suite):
    fails = ("test_delete_twice",)
    opens = opens(DeletesOnce)


class HasAClockOfItsOwn(Here):
    def now(self):
        return time.time() + 3600


class TestHasAClockOfItsOwn(Suite):
    fails = ("test_its_clock_is_that_of_its_lists",)
    opens = opens(HasAClockOfItsOwn)


class MakesItsRootAgain(Here):
    def put(self, key, data):
        try:
            super().put(key, data)
        except StorageGoneError:
            Path(self.url).mkdir()
            super().put(key, data)


class TestMakesItsRootAgain(Suite):
    fails = ("test_a_removed_root_is_gone",)
    opens = opens(MakesItsRootAgain)


class SharesItsState(Here):
    def put_stream(self, key, chunks, *, size):
        self.key = key
        time.sleep(0.001)
        super().put_stream(self.key, chunks, size=size)


class TestSharesItsState(Suite):
    fails = ("test_threads_share_it",)
    opens = opens(SharesItsState)


class ShowsItsPassword(Here):
    def __repr__(self):
        return "ShowsItsPassword(password='hunter2')"


class TestShowsItsPassword(Suite):
    fails = ("test_nothing_secret_shows",)
    secrets = ("hunter2",)
    opens = opens(ShowsItsPassword)
