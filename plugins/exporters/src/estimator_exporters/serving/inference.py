"""The endpoints that run models. They are an ASGI application without a framework, which would slow requests down."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from estimator_exporters.serving.access import Access, everybody
from estimator_exporters.serving.body import ClientGoneError, inflated, read_body
from estimator_exporters.serving.budget import Budget, Lease
from estimator_exporters.serving.calls import Arrays, Call, Form
from estimator_exporters.serving.decoding import INLINE, Decoding
from estimator_exporters.serving.disconnects import CLIENT, Client
from estimator_exporters.serving.draining import Draining
from estimator_exporters.serving.limits import Limits
from estimator_exporters.serving.metrics import Metrics
from estimator_exporters.serving.observing import NOBODY, Observing
from estimator_exporters.serving.protocol import HEADER_LENGTH
from estimator_exporters.serving.refusals import BusyError, RefusedError, explained
from estimator_exporters.serving.repository import Repository
from estimator_exporters.serving.routes import Route, route_of

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Answer = tuple[int, Mapping[str, str], bytes]

_HEADERS = {
    name.encode(): name
    for name in ("content-length", "content-encoding", "authorization", "traceparent", HEADER_LENGTH)
}
_SENT = 2**18  # bytes of an answer that are sent at a time; the rest is charged until the client reads it
_JSON_BYTES = 32  # bytes of a number in an answer

_log = logging.getLogger("estimator_exporters")


@dataclass(frozen=True, kw_only=True)
class Engine:
    """The parts that answer requests, over HTTP and gRPC.

    Attributes:
        repository: the models.
        metrics: the metrics that count requests.
        limits: the limits on the size and number of requests.
        budget: the memory budget of all requests.
        decoding: the threads for long requests.
        access: the rule that decides which client may use which model.
        observing: the observers of requests.
        draining: the state of the shutdown.
    """

    repository: Repository
    metrics: Metrics
    limits: Limits
    budget: Budget
    decoding: Decoding
    access: Access = everybody
    observing: Observing = NOBODY
    draining: Draining = field(default_factory=Draining)

    async def run(
        self, version: str | None, call: Callable[[], Call], *, long: bool, lease: Lease, client: Client
    ) -> Answer:
        """Decodes a request, runs its model and encodes the answer.

        Raises:
            RefusedError: the request is wrong, or too large.
            ClientGoneError: the client left before the model had run.
        """
        began = time.perf_counter_ns()
        asked = await self.do(call, long)
        decoded = time.perf_counter_ns()
        chosen, model = self.repository.get(asked.name, version)
        statistics = model.statistics
        try:
            with client.awaited():
                outputs = await model.infer(asked.inputs)
            ran = time.perf_counter_ns()
            size = _answer_bytes(outputs)
            lease.grow(size)
            content, headers = await self.do(lambda: asked.answer(chosen, outputs), size > INLINE)
        except Exception:
            statistics.fail.add(time.perf_counter_ns() - began)
            raise
        statistics.answered(began, decoded, ran, time.perf_counter_ns())
        return 200, headers, content

    async def do(self, run: Callable[[], Any], long: bool) -> Any:
        """Returns the result of a function. The function runs in a thread if it takes `long`."""
        return await self.decoding(run) if long else run()


class Inference:
    """Answers `POST` of `/v2/models/NAME[/versions/VERSION]/infer` and of `/v1/models/NAME[/versions/VERSION]:predict`.

    Args:
        engine: the engine that answers requests.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._repository = engine.repository
        self._metrics = engine.metrics
        self._limits = engine.limits
        self._under_way = 0

    @staticmethod
    def route(scope: Scope) -> Route | None:
        """Returns the model that a request is for, or None if the request is not for this endpoint."""
        if scope["type"] != "http" or scope["method"] != "POST":
            return None
        return route_of(scope["path"])

    async def __call__(self, route: Route, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs a model on one request."""
        started = time.perf_counter()
        self._under_way += 1
        try:
            sent = _headers(scope)
            tracing = self._engine.observing.tracing(route.name, sent.get("traceparent"))
            with self._engine.budget.lease() as lease, tracing as traced:
                client = scope.get("state", {}).get(CLIENT) or Client()
                status, headers, content = await self._answer(route, sent, receive, lease, client)
                traced(status)
                if status != ClientGoneError.status:
                    await _say(send, status, headers, content)
        finally:
            self._under_way -= 1
        known = route.name if route.name in self._repository.models else ""
        self._metrics.answered(known, status, time.perf_counter() - started)

    async def _answer(
        self, route: Route, sent: dict[str, str], receive: Receive, lease: Lease, client: Client
    ) -> Answer:
        """Returns status, headers and body. An internal error is logged, and the answer has no details of it."""
        self._metrics.under_way.inc()
        try:
            return await self._infer(route, sent, receive, lease, client)
        except RefusedError as refusal:
            return refusal.status, refusal.headers, explained(str(refusal))
        except ClientGoneError:
            return ClientGoneError.status, {}, b""
        except asyncio.CancelledError:
            self._engine.draining.overdue = True
            ended = BusyError("the server stopped before the model answered; try again")
            return ended.status, ended.headers, explained(str(ended))
        except Exception:
            _log.exception("A request failed")
            return 500, RefusedError.headers, explained("the model failed; the server's log says why")
        finally:
            self._metrics.under_way.dec()

    async def _infer(
        self, route: Route, sent: dict[str, str], receive: Receive, lease: Lease, client: Client
    ) -> Answer:
        limits = self._limits
        self._engine.access(sent.get("authorization"), route.name)
        if self._under_way > limits.under_way:
            raise BusyError(f"{limits.under_way} requests are in progress; try again later")
        self._repository.check(route.name, route.version)  # refused before its body is read
        length, encoding = sent.get("content-length"), sent.get("content-encoding")
        body = await read_body(receive, length, limit=limits.body_bytes, seconds=limits.body_seconds, lease=lease)
        form: Form = route.form

        def read() -> Call:
            plain = inflated(body, encoding, limit=limits.body_bytes, lease=lease)
            return form(
                plain, sent.get(HEADER_LENGTH), self._newest(route.version), values=limits.values, charge=lease.grow
            )

        long = len(body) > INLINE or encoding is not None
        return await self._engine.run(route.version, read, long=long, lease=lease, client=client)

    def _newest(self, version: str | None) -> Callable[[str], Any]:
        return lambda name: self._repository.get(name, version)[1]


async def _say(send: Send, status: int, headers: Mapping[str, str], content: bytes) -> None:
    head = [(key.encode(), value.encode()) for key, value in headers.items()]
    head.append((b"content-length", str(len(content)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": head})
    if len(content) <= _SENT:
        await send({"type": "http.response.body", "body": content})
        return
    view = memoryview(content)
    for start in range(0, len(view), _SENT):
        more = start + _SENT < len(view)
        await send({"type": "http.response.body", "body": bytes(view[start : start + _SENT]), "more_body": more})


def _answer_bytes(outputs: Arrays) -> int:
    """Returns an upper bound for the bytes of an answer, in JSON or in binary."""
    return sum(one.size * _JSON_BYTES if one.dtype.kind != "O" else _strings(one) for one in outputs.values())


def _strings(array: Any) -> int:
    return sum(len(value) + _JSON_BYTES for value in array.reshape(-1).tolist())


def _headers(scope: Scope) -> dict[str, str]:
    """Returns the headers that are used here, by lower-case name."""
    return {_HEADERS[name]: value.decode("latin-1") for name, value in scope["headers"] if name in _HEADERS}
