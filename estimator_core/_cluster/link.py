"""The line between the processes of a run: they agree over it, and notice when one of them is gone.

Process 0 listens, the others connect to it; messages are JSON with their length in front. It carries a few bytes a
step; arrays go over the devices' own network.
"""

from __future__ import annotations

import contextlib
import json
import logging
import math
import os
import selectors
import socket
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from estimator_core._cluster.together import describe
from estimator_core.coordinator import Lost
from estimator_core.errors import BackendUnavailableError, ProcessLostError

_log = logging.getLogger("estimator_core")
_HEADER = struct.Struct("!I")
BEAT_SECS = 2.0
#: Silence after which a process counts as lost: its machine or its network may be gone without a word.
SILENCE_SECS = 25.0
_WARN_SECS = 60.0


class Link:
    """Connects `count` processes; every process calls its methods in the same order for each channel.

    Args:
        address: `host:port` where process 0 listens.
        count: how many processes there are.
        index: which of them this is.
        on_lost: called once, from a thread, when a process is gone.
        timeout: seconds to wait for the others to connect.

    Raises:
        BackendUnavailableError: not all have connected; says which.
    """

    def __init__(
        self, address: str, count: int, index: int, *, on_lost: Callable[[Lost], None], timeout: float = 300.0
    ) -> None:
        self.count, self.index = count, index
        self._on_lost = on_lost
        self._changed = threading.Condition(threading.RLock())
        self._send_lock = threading.Lock()
        self._numbers: defaultdict[str, int] = defaultdict(int)
        self._results: dict[str, list[Any]] = {}
        self._parts: dict[str, dict[int, Any]] = {}
        self._peers: dict[int, socket.socket] = {}
        self._who: dict[int, str] = {index: f"{socket.gethostname()}, pid {os.getpid()}"}
        self._seen: dict[int, float] = {}
        self._left: set[int] = set()
        self.lost: Lost | None = None
        self._closing = False
        host, _, port = address.rpartition(":")
        deadline = time.monotonic() + timeout
        if index == 0:
            self._listen(host, int(port), deadline)
        else:
            self._call(host, int(port), deadline)
        threading.Thread(target=self._watch, name="process-link", daemon=True).start()

    def gather(self, channel: str, value: Any = None, timeout: float = math.inf) -> list[Any]:
        """What every process gave, in their order; waits for all.

        Raises:
            ProcessLostError: one of them is gone, or has not come within `timeout` seconds.
        """
        return self.post(channel, value, timeout)()

    def post(self, channel: str, value: Any = None, timeout: float = math.inf) -> Callable[[], list[Any]]:
        """The same without waiting: gives the function that waits."""
        with self._changed:
            key = f"{channel}#{self._numbers[channel]}"
            self._numbers[channel] += 1
        if self.index == 0:
            self._arrived(0, key, value)
        elif self.lost is None:
            self._send_to_chief({"key": key, "value": value})
        return lambda: self._await(key, timeout)

    def fail(self, reason: str) -> None:
        """Tells the others that this process ends with an error."""
        if self.lost is None and not self._closing:
            self._closing = True
            if self.index == 0:
                self._broadcast({"lost": 0, "who": self._who[0], "reason": reason})
            else:
                self._send_to_chief({"failed": reason})

    def leave(self) -> None:
        """Tells the others that this process is done, so that its silence is no loss."""
        if self.lost is None and not self._closing:
            self._closing = True
            if self.index == 0:
                self._broadcast({"left": 0})
            else:
                self._send_to_chief({"left": True})

    def _await(self, key: str, timeout: float) -> list[Any]:
        began, warned = time.monotonic(), False
        with self._changed:
            while key not in self._results:
                if self.lost is None and self.index and 0 in self._left:
                    self._note_lost(0, f"it has ended, while others wait for it at {key!r}")
                if self.lost is not None:
                    raise ProcessLostError(describe(self.lost, self.count), self.lost.index)
                left = began + timeout - time.monotonic()
                if left <= 0:
                    late = self._late(key)
                    raise ProcessLostError(
                        f"Processes {late} of {self.count} have not come to {key!r} within {timeout:g} s.", late[0]
                    )
                self._changed.wait(min(1.0, left))
                if not warned and time.monotonic() - began > _WARN_SECS:
                    warned = True
                    late = "" if self.index else f": {self._late(key)}"
                    _log.warning("Waiting for other processes for %.0f s at %r%s.", _WARN_SECS, key, late)
            return self._results.pop(key)

    def _late(self, key: str) -> list[int]:
        """Who has not come, as far as this process knows: process 0 hears of all, the others of process 0 alone."""
        here = self._parts.get(key, {})
        return [0] if self.index else [p for p in range(self.count) if p not in here]

    # ---- Connecting

    def _listen(self, host: str, port: int, deadline: float) -> None:
        try:
            server = socket.create_server(("", port), backlog=max(16, self.count))
        except OSError as error:
            raise BackendUnavailableError(
                f"Process 0 cannot listen on port {port} of {host}: {error}. Choose a free port for the coordinator."
            ) from error
        with server:
            while len(self._peers) < self.count - 1:
                server.settimeout(max(0.01, deadline - time.monotonic()))
                try:
                    peer, _ = server.accept()
                    peer.settimeout(10)
                    hello = _receive(peer)
                except (TimeoutError, OSError, ValueError):
                    if time.monotonic() < deadline:
                        continue
                    absent = [p for p in range(1, self.count) if p not in self._peers]
                    raise BackendUnavailableError(
                        f"Processes {absent} of {self.count} have not connected to {host}:{port}. Start all of them; "
                        "each must reach that address."
                    ) from None
                index = hello.get("index")
                if hello.get("count") != self.count or not isinstance(index, int) or index in self._peers:
                    _send(peer, {"refused": f"process {index} of {hello.get('count')} does not belong here"})
                    peer.close()
                    continue
                self._peers[index], self._who[index] = peer, str(hello.get("who"))
        for index, peer in self._peers.items():
            peer.settimeout(None)
            _keep(peer)
            self._seen[index] = time.monotonic()
        self._broadcast({"who": {str(index): who for index, who in self._who.items()}})

    def _call(self, host: str, port: int, deadline: float) -> None:
        while True:
            try:
                chief = socket.create_connection((host, port), timeout=max(0.1, min(10.0, deadline - time.monotonic())))
                _send(chief, {"index": self.index, "count": self.count, "who": self._who[self.index]})
                chief.settimeout(max(1.0, deadline - time.monotonic()))
                welcome = _receive(chief)
                break
            except (OSError, ValueError) as error:
                if time.monotonic() > deadline:
                    raise BackendUnavailableError(
                        f"Process {self.index} of {self.count} cannot reach process 0 at {host}:{port}: {error}. Start "
                        "all processes, and give them an address of process 0 that they can reach."
                    ) from error
                time.sleep(0.1)
        if "refused" in welcome:
            raise BackendUnavailableError(
                f"Process 0 at {host}:{port} refuses this one: {welcome['refused']}. Two runs may share an address, "
                "or two processes an index."
            )
        chief.settimeout(None)
        _keep(chief)
        self._peers[0] = chief
        self._who.update({int(index): who for index, who in welcome["who"].items()})
        self._seen[0] = time.monotonic()

    # ---- Watching

    def _watch(self) -> None:
        """Reads what arrives, sends signs of life, notices silence."""
        with selectors.DefaultSelector() as selector:
            for index, peer in self._peers.items():
                selector.register(peer, selectors.EVENT_READ, index)
            beaten = 0.0
            while self.lost is None and selector.get_map():
                for ready, _ in selector.select(timeout=BEAT_SECS / 2):
                    if not self._read(ready.data):
                        selector.unregister(ready.fileobj)
                now = time.monotonic()
                if now - beaten > BEAT_SECS:
                    beaten = now
                    self._broadcast({"alive": 1}) if self.index == 0 else self._send_to_chief({"alive": 1})
                for index, seen in list(self._seen.items()):
                    if now - seen > SILENCE_SECS and index not in self._left:
                        self._note_lost(index, f"nothing was heard of it for {SILENCE_SECS:.0f} s")

    def _read(self, index: int) -> bool:
        try:
            message = _receive(self._peers[index])
        except (OSError, ValueError):
            if index not in self._left and not self._closing:
                self._note_lost(index, "its connection broke: it was killed, it crashed, or its machine is gone")
            return False
        self._seen[index] = time.monotonic()
        if "key" in message:
            if "all" in message:
                self._complete(message["key"], message["all"])
            else:
                self._arrived(index, message["key"], message["value"])
        elif "failed" in message:
            self._note_lost(index, message["failed"])
        elif "lost" in message:
            self._note_lost(message["lost"], message["reason"])
        elif "left" in message:
            self._left.add(index)
            self._check_left()
        return True

    def _arrived(self, index: int, key: str, value: Any) -> None:
        """At the chief: one process's part of an exchange."""
        with self._changed:
            parts = self._parts.setdefault(key, {})
            parts[index] = value
            complete = len(parts) == self.count
            if complete:
                del self._parts[key]
        if complete:
            everything = [parts[p] for p in range(self.count)]
            self._broadcast({"key": key, "all": everything})
            self._complete(key, everything)
        elif self._left:
            self._check_left()

    def _check_left(self) -> None:
        with self._changed:
            missing = [(key, p) for key, parts in self._parts.items() for p in sorted(self._left) if p not in parts]
        if missing:
            key, index = missing[0]
            self._note_lost(index, f"it has ended, while others wait for it at {key!r}")

    def _complete(self, key: str, values: list[Any]) -> None:
        with self._changed:
            self._results[key] = values
            self._changed.notify_all()

    def _note_lost(self, index: int, reason: str) -> None:
        with self._changed:
            if self.lost is not None:
                return
            self.lost = lost = Lost(index, self._who.get(index, "?"), reason)
            self._changed.notify_all()
        if self.index == 0:
            self._broadcast({"lost": index, "reason": reason})
        self._on_lost(lost)

    def _broadcast(self, message: dict[str, Any]) -> None:
        for index, peer in self._peers.items():
            if index not in self._left:
                self._send_to(peer, message)

    def _send_to_chief(self, message: dict[str, Any]) -> None:
        self._send_to(self._peers[0], message)

    def _send_to(self, peer: socket.socket, message: dict[str, Any]) -> None:
        with self._send_lock, contextlib.suppress(OSError):  # the reader notices a broken connection
            _send(peer, message)


def _send(peer: socket.socket, message: dict[str, Any]) -> None:
    data = json.dumps(message, separators=(",", ":")).encode()
    peer.sendall(_HEADER.pack(len(data)) + data)


def _receive(peer: socket.socket) -> dict[str, Any]:
    (size,) = _HEADER.unpack(_exactly(peer, _HEADER.size))
    return json.loads(_exactly(peer, size))


def _exactly(peer: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = peer.recv(size - len(data))
        if not piece:
            raise ConnectionError("the connection was closed")
        data += piece
    return data


def _keep(peer: socket.socket) -> None:
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
