"""The HTTP interface as an ASGI application."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from estimator_core.export import Feature
from estimator_exporters.serving.body import decompressed, read_body
from estimator_exporters.serving.datatypes import datatype
from estimator_exporters.serving.metrics import Metrics
from estimator_exporters.serving.protocol import HEADER_LENGTH, build_response, parse_request
from estimator_exporters.serving.refusals import BusyError, RefusedError
from estimator_exporters.serving.repository import Repository

_log = logging.getLogger("estimator_exporters")
_NOBODY = 499  # the client went away before its answer


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a server takes.

    Attributes:
        body_bytes: greatest body of a request.
        body_seconds: time for a client to send it.
        under_way: inference requests at a time; more are answered 503.
        poll_seconds: between two looks for new exports.
    """

    body_bytes: int = 64 * 2**20
    body_seconds: float = 30.0
    under_way: int = 256
    poll_seconds: float = 2.0


def make_app(
    repository: Repository, metrics: Metrics, limits: Limits, announce: Callable[[], None] = lambda: None
) -> Starlette:
    """The application; it loads the models, watches for new exports, and answers what is waiting at the end."""
    server = _Server(repository, metrics, limits, announce)
    model = "/v2/models/{model}"
    version = f"{model}/versions/{{version}}"
    routes = [
        Route("/v2", server.metadata),
        Route("/v2/", server.metadata),
        Route("/v2/health/live", server.live),
        Route("/v2/health/ready", server.ready),
        Route("/v2/repository/index", server.index, methods=["POST"]),
        Route("/metrics", server.prometheus),
    ]
    for base in (model, version):
        routes += [
            Route(base, server.model),
            Route(f"{base}/ready", server.model_ready),
            Route(f"{base}/config", server.model_config),
            Route(f"{base}/infer", server.infer, methods=["POST"]),
        ]
    return Starlette(routes=routes, lifespan=server.life)


class _Server:
    def __init__(self, repository: Repository, metrics: Metrics, limits: Limits, announce: Callable[[], None]) -> None:
        self._announce = announce
        self._repository = repository
        self._metrics = metrics
        self._limits = limits
        self._under_way = 0

    @contextlib.asynccontextmanager
    async def life(self, app: Starlette) -> AsyncGenerator[None]:
        """Loads before the first request; drains after the last."""
        await self._repository.refresh()
        self._announce()
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching
            await self._repository.close()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._limits.poll_seconds)
            try:
                await self._repository.refresh()
            except Exception:
                _log.exception("Looking for new exports failed")

    async def metadata(self, request: Request) -> Response:
        """Name and version of the server."""
        from estimator_exporters import __version__

        return JSONResponse(
            {"name": "estimator", "version": __version__, "extensions": ["binary_tensor_data", "model_repository"]}
        )

    async def live(self, request: Request) -> Response:
        """That the process answers."""
        return Response(status_code=200)

    async def ready(self, request: Request) -> Response:
        """Whether every model can be asked."""
        return Response(status_code=200 if self._repository.ready else 503)

    async def index(self, request: Request) -> Response:
        """All models and versions."""
        return JSONResponse(
            [
                {"name": name, "version": version, "state": "READY", "reason": ""}
                for name, versions in sorted(self._repository.models.items())
                for version in sorted(versions)
            ]
        )

    async def prometheus(self, request: Request) -> Response:
        """The metrics."""
        return Response(self._metrics.text(), media_type="text/plain; version=0.0.4")

    async def model(self, request: Request) -> Response:
        """Inputs and outputs of a model."""
        return await _answered(self._describe(request))

    async def model_ready(self, request: Request) -> Response:
        """Whether a model can be asked."""

        async def answer() -> Response:
            self._repository.get(request.path_params["model"], request.path_params.get("version"))
            return Response(status_code=200)

        return await _answered(answer())

    async def model_config(self, request: Request) -> Response:
        """What Triton's clients ask for in addition."""

        async def answer() -> Response:
            name = request.path_params["model"]
            _, model = self._repository.get(name, request.path_params.get("version"))
            batches = {"max_batch_size": model.max_batch} if model.batches else {"max_batch_size": 0}
            return JSONResponse({"name": name, "platform": "jax", "backend": "estimator", **batches})

        return await _answered(answer())

    async def _describe(self, request: Request) -> Response:
        name = request.path_params["model"]
        version, model = self._repository.get(name, request.path_params.get("version"))
        versions = sorted(self._repository.models[name])
        return JSONResponse(
            {
                "name": name,
                "versions": versions if "version" not in request.path_params else [version],
                "platform": "jax",
                "inputs": [_tensor(key, feature) for key, feature in model.inputs.items()],
                "outputs": [_tensor(key, feature) for key, feature in model.outputs.items()],
            }
        )

    async def infer(self, request: Request) -> Response:
        """Runs a model."""
        name = request.path_params["model"]
        known = name if name in self._repository.models else ""
        self._metrics.under_way.inc()
        self._under_way += 1
        started = time.perf_counter()
        try:
            response = await _answered(self._infer(request, name))
        finally:
            self._under_way -= 1
            self._metrics.under_way.dec()
        self._metrics.requests.labels(known, str(response.status_code)).inc()
        self._metrics.seconds.labels(known).observe(time.perf_counter() - started)
        return response

    async def _infer(self, request: Request, name: str) -> Response:
        if self._under_way > self._limits.under_way:
            raise BusyError(f"{self._limits.under_way} requests are under way; ask again later")
        version, model = self._repository.get(name, request.path_params.get("version"))
        limit = self._limits.body_bytes
        body = await read_body(
            request.stream(), request.headers.get("content-length"), limit=limit, seconds=self._limits.body_seconds
        )
        body = decompressed(body, request.headers.get("content-encoding"), limit=limit)
        parsed = parse_request(body, request.headers.get(HEADER_LENGTH))
        results = await model.infer(parsed.inputs)
        content, headers = build_response(parsed, name, version, results)
        return Response(content, headers=headers)


async def _answered(answer: Awaitable[Response]) -> Response:
    """The answer, or what is said instead; a fault of ours is logged and told without its details."""
    try:
        return await answer
    except RefusedError as refusal:
        headers = {"retry-after": "1"} if refusal.status == BusyError.status else {}
        if refusal.status in (408, 413):
            headers["connection"] = "close"  # the rest of the body is not read
        return JSONResponse({"error": str(refusal)}, status_code=refusal.status, headers=headers)
    except ClientDisconnect:
        return Response(status_code=_NOBODY)
    except Exception:
        _log.exception("A request failed")
        return JSONResponse({"error": "the model failed; the server's log says why"}, status_code=500)


def _tensor(name: str, feature: Feature) -> dict[str, object]:
    shape = [-1 if size is None else size for size in feature.shape]
    return {"name": name, "datatype": datatype(feature.dtype), "shape": shape}
