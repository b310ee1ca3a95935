"""The storage suite passes a sound storage and catches broken ones. The losing proxy loses what a test selects."""

import contextlib
import shutil
import socket
import threading
from pathlib import Path

from estimator_core.testing import LosingProxy, StorageSuite


class TestSound(StorageSuite):
    many = 60

    def location(self, folder):
        return str(folder / "root")

    def remove_root(self, location):
        shutil.rmtree(location)

    def beside(self, location):
        return [str(path) for path in Path(location).parent.iterdir() if path != Path(location)]


def test_broken_storages_are_caught(assert_each_is_caught):
    assert_each_is_caught("storages")


def test_the_proxy_loses_the_answers_it_is_told_to_and_no_request():
    asked = []

    def serve(listener):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                with connection:
                    asked.append(connection.recv(100))
                    connection.sendall(b"answer")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        with LosingProxy(*listener.getsockname()) as proxy:
            answers = []
            for loses in (0, 1, 0):
                proxy.lose(loses)
                with socket.create_connection(("127.0.0.1", int(proxy.address.partition(":")[2]))) as client:
                    client.sendall(b"question")
                    answers.append(client.recv(100))
            assert answers == [b"answer", b"", b"answer"]
            assert asked == [b"question"] * 3
            assert proxy.lost == 1
        listener.shutdown(socket.SHUT_RDWR)
