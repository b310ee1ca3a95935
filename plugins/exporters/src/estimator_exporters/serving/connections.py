"""Connections with limits that uvicorn does not have: on heads, trailers, unread bodies and unread answers."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from estimator_exporters.serving.budget import Budget, Lease
from estimator_exporters.serving.disconnects import CLIENT, Client
from estimator_exporters.serving.limits import Limits
from estimator_exporters.serving.refusals import FullError, explained
from estimator_exporters.serving.turns import TurnFlow, Turns

# The memory of an open connection without a request: its objects, and the bytes that uvicorn reads in advance.
CONNECTION_BYTES = 64 * 2**10
_LONG = 2**14  # bytes of a body in one read, after which other connections are read first
_IDLE, _HEAD, _BODY = range(3)
_BODIES = frozenset({b"content-length", b"transfer-encoding"})
_UPGRADE = (
    "a request with a body must not ask for another protocol (Upgrade); this server speaks HTTP/1.1. In Java: "
    "HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1)"
)


def connections(limits: Limits, budget: Budget) -> type[HttpToolsProtocol]:
    """Returns the class of the connections of a server.

    Heads and trailers that are too large get status 431, and requests that are too slow get 408. A request whose head
    does not fit into the budget gets 429. A request that has a body and requests another protocol gets 400. A
    connection without progress is closed.
    """
    turns = Turns()

    class Connection(HttpToolsProtocol):
        """A connection of the server. `_part` is the part of a request that is arriving."""

        _part = _IDLE
        _loose = 0  # bytes since the start of the head, or since the last byte of a body: sizes of chunks, trailers
        _moved = False  # whether the last read contained bytes of a body
        _timer: asyncio.TimerHandle | None = None
        _stuck: asyncio.TimerHandle | None = None
        _lease: Lease
        _client: Client

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.flow = TurnFlow(transport, turns)
            self._lease = budget.lease()
            self._client = Client()
            self._start_timer()
            self._charge(CONNECTION_BYTES)

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            self.resume_writing()
            self._lease.shrink(0)
            self._client.leave()
            super().connection_lost(exc)

        def on_message_begin(self) -> None:
            self._part, self._loose = _HEAD, 0
            super().on_message_begin()
            self.scope.setdefault("state", {})[CLIENT] = self._client

        def on_header(self, name: bytes, value: bytes) -> None:
            if self._part == _HEAD:  # trailers are dropped, because no code reads them
                super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._part, self._loose = _BODY, 0
            self._stop_timer()
            if sum(len(name) + len(value) for name, value in self.headers) + len(self.url) > limits.head_bytes:
                self._refuse_head()
                raise ValueError("the head is too large")  # the parser stops
            parser: Any = self.parser
            if parser.should_upgrade() and any(name in _BODIES and value != b"0" for name, value in self.headers):
                self._refuse(b"400 Bad Request", _UPGRADE)  # the parser would drop the body
                raise ValueError("another protocol is requested")
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self._moved = True
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._part = _IDLE
            self._stop_timer()
            self._lease.shrink(CONNECTION_BYTES)
            super().on_message_complete()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._part == _IDLE or self.transport.is_closing():
                if not self.pipeline:
                    self.flow.resume_reading()  # no code reads the rest of the body; this detects a client that leaves
                return
            if self._moved and len(data) >= _LONG:
                self.flow.pause_reading()
                if self.cycle.response_complete:  # no code reads the rest, which is dropped
                    self.flow.resume_reading()
            self._loose = 0 if self._moved else self._loose + len(data)
            self._moved = False
            if self._loose > limits.head_bytes:
                self._refuse_head()
                return
            if self._timer is None:
                self._start_timer()
            if self._part == _HEAD:
                self._charge(len(data))

        def send_400_response(self, msg: str) -> None:
            if not self.transport.is_closing():  # it may already be refused
                super().send_400_response(msg)

        def pause_writing(self) -> None:
            super().pause_writing()
            if self._stuck is None:
                self._stuck = self.loop.call_later(limits.body_seconds, self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            if self._stuck is not None:
                self._stuck.cancel()
                self._stuck = None

        def _charge(self, count: int) -> None:
            try:
                self._lease.grow(count)
            except FullError as full:
                self._refuse(b"429 Too Many Requests\r\nretry-after: 1", str(full))

        def _start_timer(self) -> None:
            self._timer = self.loop.call_later(limits.body_seconds, self._too_slow)

        def _stop_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _too_slow(self) -> None:
            self._timer = None
            if self.transport.is_closing():
                return
            if self._part != _BODY:
                self._refuse(b"408 Request Timeout", f"the request did not arrive within {limits.body_seconds:g} s")
            elif self.cycle.response_complete:
                self.transport.close()  # it was answered, and its body continues
            # otherwise the code that answers it reads the body, within the same time

        def _refuse_head(self) -> None:
            self._refuse(b"431 Request Header Fields Too Large", f"the head has over {limits.head_bytes} bytes")

        def _refuse(self, status: bytes, why: str) -> None:
            """Sends the reason and closes the connection. It does not write into an answer that has begun."""
            cycle: Any = self.cycle  # None before the first request
            if cycle is None or cycle.response_complete or not cycle.response_started:
                body = explained(why)
                head = (
                    b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
                )
                self.transport.write(head % (status, len(body)) + body)
            if cycle is not None:
                cycle.disconnected = True  # the rest of the application's answer is dropped
                cycle.message_event.set()
            self.transport.close()

    return Connection
