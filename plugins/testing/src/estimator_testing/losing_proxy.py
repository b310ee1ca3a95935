"""A proxy that loses answers: the server executes the request, but the client gets no answer."""

from __future__ import annotations

import contextlib
import socket
import threading
from types import TracebackType


class LosingProxy:
    """Passes on the bytes of TCP connections, until it is told to lose an answer.

    Args:
        host, port: the address of the server.

    Attributes:
        address: `host:port` of the proxy.
        lost: the number of answers that it has lost.

    Example:
        >>> with socket.create_server(("127.0.0.1", 0)) as server, LosingProxy(*server.getsockname()) as proxy:
        ...     print(proxy.address.partition(":")[0], proxy.lost)
        127.0.0.1 0
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.lost = 0
        self._to_lose = 0
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []

    def lose(self, answers: int) -> None:
        """Loses the next answers: the connection ends where an answer would begin."""
        with self._lock:
            self._to_lose = answers

    def __enter__(self) -> LosingProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for one in [self._listener, *self._open]:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # closed by __exit__
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self._open += [client, server]
                threading.Thread(target=self._requests, args=(client, server), daemon=True).start()
                threading.Thread(target=self._answers, args=(server, client), daemon=True).start()

    def _requests(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                server.sendall(data)
        with contextlib.suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _answers(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                if self._loses():
                    break
                client.sendall(data)
        for one in (client, server):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _loses(self) -> bool:
        with self._lock:
            loses = self._to_lose > 0
            self._to_lose -= loses
            self.lost += loses
            return loses
