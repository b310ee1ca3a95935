"""Connections with limits on the heads of requests, which uvicorn leaves open; bodies are limited in `body.py`."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from estimator_exporters.serving.limits import Limits
from estimator_exporters.serving.refusals import explained


def connections(limits: Limits) -> type[HttpToolsProtocol]:
    """The class of a server's connections: a head that is too large gets 431, one that does not come in time 408."""

    class Connection(HttpToolsProtocol):
        """One connection; a head is open from the connection or the last request on until its empty line."""

        _open_bytes = 0
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._start_timer()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_timer()
            super().connection_lost(exc)

        def on_message_begin(self) -> None:
            self._open_bytes = 1
            super().on_message_begin()

        def on_headers_complete(self) -> None:
            self._open_bytes = 0
            self._stop_timer()
            super().on_headers_complete()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if not self._open_bytes or self.transport.is_closing():
                return
            self._open_bytes += len(data)
            if self._open_bytes > limits.head_bytes:
                self._refuse(b"431 Request Header Fields Too Large", f"the head has over {limits.head_bytes} bytes")
            elif self._timer is None:
                self._start_timer()

        def _start_timer(self) -> None:
            self._timer = self.loop.call_later(limits.body_seconds, self._too_slow)

        def _stop_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _too_slow(self) -> None:
            self._timer = None
            if not self.transport.is_closing():
                self._refuse(b"408 Request Timeout", f"the request did not come within {limits.body_seconds:g} s")

        def _refuse(self, status: bytes, why: str) -> None:
            body = explained(why)
            head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n"
            self.transport.write(head % (status, len(body)) + body)
            self.transport.close()

    return Connection
