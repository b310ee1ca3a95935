"""The HTTP interface as an ASGI application."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from estimator_exporters.serving.datatypes import tensor_metadata
from estimator_exporters.serving.inference import Engine, Inference, Receive, Scope, Send
from estimator_exporters.serving.page_access import guarded
from estimator_exporters.serving.pages import answered
from estimator_exporters.serving.tensorflow_pages import tensorflow_routes

_log = logging.getLogger("estimator_exporters")

Beside = Callable[[], contextlib.AbstractAsyncContextManager[None]]
Renew = Callable[[], None]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


def make_app(
    engine: Engine,
    announce: Callable[[], None] = lambda: None,
    beside: Beside = contextlib.nullcontext,
    renew: Renew = lambda: None,
) -> Application:
    """Returns the application.

    It loads the models, watches for new exports, and answers waiting requests before it ends.

    Args:
        engine: the engine that answers requests.
        announce: called once when every model is ready.
        beside: returns the context of another server of the same models, such as gRPC.
        renew: called at each check for new exports. It reads other files that may have changed.
    """
    server = _Server(engine, announce, beside, renew)
    model = "/v2/models/{model:path}"  # the name of a signature may have slashes
    version = f"{model}/versions/{{version}}"
    routes = [
        Route("/v2", server.metadata),
        Route("/v2/", server.metadata),
        Route("/v2/health/live", server.live),
        Route("/v2/health/ready", server.ready),
        Route("/v2/repository/index", server.index, methods=["POST"]),
        Route("/v2/models/stats", server.statistics),
        Route("/metrics", server.prometheus),
    ]
    for base in (version, model):
        routes += [
            Route(f"{base}/ready", server.model_ready),
            Route(f"{base}/config", server.model_config),
            Route(f"{base}/stats", server.statistics),
        ]
    routes += [Route(version, server.model), Route(model, server.model)]
    others = Starlette(routes=[*routes, *tensorflow_routes(engine.repository)], lifespan=server.life)
    inference = Inference(engine)

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        route = inference.route(scope)
        if route is None:
            await guarded(engine.access, others)(scope, receive, send)
        else:
            await inference(route, scope, receive, send)

    return application


class _Server:
    def __init__(self, engine: Engine, announce: Callable[[], None], beside: Beside, renew: Renew) -> None:
        self._announce = announce
        self._beside = beside
        self._renew = renew
        self._engine = engine
        self._repository = engine.repository
        self._metrics = engine.metrics
        self._limits = engine.limits

    @contextlib.asynccontextmanager
    async def life(self, app: Starlette) -> AsyncGenerator[None]:
        """Loads the models before the first request, and drains after the last one."""
        await self._repository.refresh()
        watching = asyncio.create_task(self._watch())
        try:
            async with self._beside():
                self._announce()
                yield
        finally:
            watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await watching
            await self._close()
            self._engine.decoding.close()

    async def _close(self) -> None:
        draining = self._engine.draining
        try:
            await asyncio.wait_for(self._repository.close(), draining.left() if draining.begun.is_set() else None)
        except TimeoutError:
            draining.overdue = True

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._limits.poll_seconds)
            try:
                await asyncio.to_thread(self._renew)
                await self._repository.refresh()
            except Exception:
                _log.exception("The check for new exports failed")

    async def metadata(self, request: Request) -> Response:
        """Returns the name and version of the server."""
        from estimator_exporters import __version__

        return JSONResponse(
            {
                "name": "estimator",
                "version": __version__,
                "extensions": ["binary_tensor_data", "model_repository", "statistics"],
            }
        )

    async def live(self, request: Request) -> Response:
        """Shows that the process answers."""
        return Response(status_code=200)

    async def ready(self, request: Request) -> Response:
        """Reports whether every model is ready."""
        return Response(status_code=200 if self._repository.ready else 503)

    async def index(self, request: Request) -> Response:
        """Lists all models and versions."""
        return JSONResponse(
            [
                {"name": name, "version": version, "state": "READY", "reason": ""}
                for name, versions in sorted(self._repository.models.items())
                for version in sorted(versions)
            ]
        )

    async def statistics(self, request: Request) -> Response:
        """Returns the statistics of all models, of one model, or of one version."""

        async def answer() -> Response:
            name, version = request.path_params.get("model"), request.path_params.get("version")
            found = self._repository.statistics(name, version)
            return JSONResponse({"model_stats": found})

        return await answered(answer())

    async def prometheus(self, request: Request) -> Response:
        """Returns the metrics as Prometheus text."""
        return Response(self._metrics.text(), media_type="text/plain; version=0.0.4")

    async def model(self, request: Request) -> Response:
        """Describes the inputs and outputs of a model."""
        return await answered(self._describe(request))

    async def model_ready(self, request: Request) -> Response:
        """Reports whether a model is ready."""

        async def answer() -> Response:
            self._repository.get(request.path_params["model"], request.path_params.get("version"))
            return Response(status_code=200)

        return await answered(answer())

    async def model_config(self, request: Request) -> Response:
        """Returns the configuration that Triton clients request in addition."""

        async def answer() -> Response:
            name = request.path_params["model"]
            _, model = self._repository.get(name, request.path_params.get("version"))
            batches = {"max_batch_size": model.max_batch} if model.batches else {"max_batch_size": 0}
            return JSONResponse({"name": name, "platform": "jax", "backend": "estimator", **batches})

        return await answered(answer())

    async def _describe(self, request: Request) -> Response:
        name = request.path_params["model"]
        version, model = self._repository.get(name, request.path_params.get("version"))
        versions = sorted(self._repository.models[name])
        return JSONResponse(
            {
                "name": name,
                "versions": versions if "version" not in request.path_params else [version],
                "platform": "jax",
                "inputs": [tensor_metadata(key, feature) for key, feature in model.inputs.items()],
                "outputs": [tensor_metadata(key, feature) for key, feature in model.outputs.items()],
            }
        )
