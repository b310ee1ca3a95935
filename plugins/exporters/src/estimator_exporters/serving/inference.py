"""The end point that runs models: an ASGI application without a framework, since every request pays for that."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from estimator_exporters.serving.body import ClientGoneError, decompressed, read_body
from estimator_exporters.serving.limits import Limits
from estimator_exporters.serving.metrics import Metrics
from estimator_exporters.serving.protocol import HEADER_LENGTH, build_response, parse_request
from estimator_exporters.serving.refusals import BusyError, RefusedError, explained
from estimator_exporters.serving.repository import Repository

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_PREFIX, _SUFFIX, _VERSIONS = "/v2/models/", "/infer", "/versions/"
_NOBODY = 499  # the client went away before its answer
_HEADERS = {name.encode(): name for name in ("content-length", "content-encoding", HEADER_LENGTH)}

_log = logging.getLogger("estimator_exporters")


class Inference:
    """Answers `POST /v2/models/NAME[/versions/VERSION]/infer`.

    Args:
        repository: the models.
        metrics: counts requests.
        limits: what is taken.
    """

    def __init__(self, repository: Repository, metrics: Metrics, limits: Limits) -> None:
        self._repository = repository
        self._metrics = metrics
        self._limits = limits
        self._under_way = 0

    @staticmethod
    def is_meant(scope: Scope) -> bool:
        """Whether a request is for this end point."""
        if scope["type"] != "http" or scope["method"] != "POST":
            return False
        path: str = scope["path"]
        return path.endswith(_SUFFIX) and path.startswith(_PREFIX)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Runs a model on one request."""
        path: str = scope["path"]
        name, _, version = path[len(_PREFIX) : -len(_SUFFIX)].partition(_VERSIONS)
        started = time.perf_counter()
        self._under_way += 1
        try:
            status, headers, content = await self._answer(name, version or None, _headers(scope), receive)
        finally:
            self._under_way -= 1
        if status != _NOBODY:
            head = [(key.encode(), value.encode()) for key, value in headers.items()]
            head.append((b"content-length", str(len(content)).encode()))
            await send({"type": "http.response.start", "status": status, "headers": head})
            await send({"type": "http.response.body", "body": content})
        known = name if name in self._repository.models else ""
        self._metrics.answered(known, status, time.perf_counter() - started)

    async def _answer(
        self, name: str, version: str | None, sent: dict[str, str], receive: Receive
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body; a fault of ours is logged and told without its details."""
        self._metrics.under_way.inc()
        try:
            return await self._infer(name, version, sent, receive)
        except RefusedError as refusal:
            return refusal.status, refusal.headers, explained(str(refusal))
        except ClientGoneError:
            return _NOBODY, {}, b""
        except Exception:
            _log.exception("A request failed")
            return 500, RefusedError.headers, explained("the model failed; the server's log says why")
        finally:
            self._metrics.under_way.dec()

    async def _infer(
        self, name: str, version: str | None, sent: dict[str, str], receive: Receive
    ) -> tuple[int, Mapping[str, str], bytes]:
        limits = self._limits
        if self._under_way > limits.under_way:
            raise BusyError(f"{limits.under_way} requests are under way; ask again later")
        self._repository.get(name, version)  # refused before its body is read
        body = await read_body(
            receive, sent.get("content-length"), limit=limits.body_bytes, seconds=limits.body_seconds
        )
        body = decompressed(body, sent.get("content-encoding"), limit=limits.body_bytes)
        request = parse_request(body, sent.get(HEADER_LENGTH))
        chosen, model = self._repository.get(name, version)  # a newer one may have taken its place meanwhile
        content, headers = build_response(request, name, chosen, await model.infer(request.inputs))
        return 200, headers, content


def _headers(scope: Scope) -> dict[str, str]:
    """The headers that matter here, by lower-case name."""
    return {_HEADERS[name]: value.decode("latin-1") for name, value in scope["headers"] if name in _HEADERS}
