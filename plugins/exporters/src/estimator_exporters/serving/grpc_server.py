"""The gRPC form of the Open Inference Protocol. It shares the event loop and the models of the HTTP server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Set
from typing import Any

import grpc
from google.protobuf import json_format

from estimator_core.errors import ArgumentError
from estimator_exporters.serving.body import ClientGoneError
from estimator_exporters.serving.datatypes import tensor_metadata
from estimator_exporters.serving.decoding import INLINE
from estimator_exporters.serving.draining import Draining
from estimator_exporters.serving.grpc_form import inputs_of, response_of
from estimator_exporters.serving.grpc_messages import MESSAGES, SERVICE
from estimator_exporters.serving.inference import Engine
from estimator_exporters.serving.refusals import BusyError, RefusedError
from estimator_exporters.serving.telemetry import untraced
from estimator_exporters.serving.tls import Parts, Tls

_log = logging.getLogger("estimator_exporters")
_CODES = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    413: grpc.StatusCode.RESOURCE_EXHAUSTED,
    429: grpc.StatusCode.UNAVAILABLE,
}
_TELLING = 0.2  # seconds in which late calls are refused with advice to retry; gRPC cancels calls that it still queues
_ENDS = "the server is stopping; try again"
_ENDED = "the server stopped before the model answered; try again"
_HEALTH = ("ServerLive", "ServerReady")
Handler = Callable[[Any], Awaitable[Any]]


@contextlib.asynccontextmanager
async def grpc_serving(
    engine: Engine, host: str, port: int, tls: Tls | None, listening: Callable[[int], None]
) -> AsyncGenerator[None]:
    """Serves over gRPC until the block ends.

    gRPC reads a message completely before it passes the message on. The size of a message is therefore limited to the
    share of `memory_bytes` that each concurrent request has.

    Args:
        engine: the engine that answers requests.
        host: the address to listen on.
        port: the port to listen on. 0 selects a free port.
        tls: the certificates, or None for no encryption.
        listening: called with the port.

    Raises:
        ArgumentError: the address cannot be used.
    """
    limits = engine.limits
    largest = min(limits.body_bytes, limits.memory_bytes // limits.under_way)
    server = grpc.aio.server(
        maximum_concurrent_rpcs=limits.under_way,
        options=[("grpc.max_receive_message_length", largest), ("grpc.so_reuseport", 0)],
    )
    methods = _Methods(engine)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods.handlers()),))
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        if tls is None:
            chosen = server.add_insecure_port(address)
        else:
            chosen = server.add_secure_port(address, _credentials(tls))
    except RuntimeError as error:
        raise ArgumentError(f"Cannot listen on {address}: {error}. Choose another --grpc-port.") from error
    await server.start()
    listening(chosen)
    stopping = asyncio.create_task(_stop(server, engine.draining, methods.under_way))
    try:
        yield
    finally:
        engine.draining.begin(0)  # has no effect if it has already begun
        await stopping


async def _stop(server: Any, draining: Draining, under_way: Set[asyncio.Task[Any]]) -> None:
    """Shuts down together with HTTP, within the same seconds. Clients retry UNAVAILABLE, but not CANCELLED."""
    await draining.begun.wait()
    await asyncio.sleep(_TELLING)
    left = draining.left()
    stopped = asyncio.ensure_future(server.stop(left + _TELLING))
    await asyncio.wait((stopped,), timeout=left)
    for call in tuple(under_way):
        call.cancel()  # they send this status to their clients; gRPC cancels the calls that are left after that
    await stopped


def _credentials(tls: Tls) -> Any:
    """Returns certificates that are read again if their files have changed."""

    def configuration(parts: Parts) -> Any:
        return grpc.ssl_server_certificate_configuration([(parts.key, parts.certificate)], parts.client_authority)

    changed = tls.changes()

    def fetch() -> Any:
        parts = changed()
        return None if parts is None else configuration(parts)

    required = tls.client_authority is not None
    return grpc.dynamic_ssl_server_credentials(configuration(tls.read()), fetch, require_client_authentication=required)


class _Methods:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._repository = engine.repository
        #: The calls whose answers are being computed.
        self.under_way: set[asyncio.Task[Any]] = set()

    def handlers(self) -> dict[str, Any]:
        """Returns the methods of the service by name."""
        methods: dict[str, Handler] = {
            "ServerLive": self._live,
            "ServerReady": self._ready,
            "ServerMetadata": self._server,
            "ModelReady": self._model_ready,
            "ModelMetadata": self._model,
            "ModelInfer": self._infer,
            "ModelStatistics": self._statistics,
        }
        return {
            name: grpc.unary_unary_rpc_method_handler(
                self._answering(name, method),
                request_deserializer=MESSAGES[f"{name}Request"].FromString,
                response_serializer=MESSAGES[f"{name}Response"].SerializeToString,
            )
            for name, method in methods.items()
        }

    def _answering(self, name: str, method: Handler) -> Callable[[Any, Any], Awaitable[Any]]:
        async def answer(request: Any, context: Any) -> Any:
            model = getattr(request, "model_name", getattr(request, "name", ""))
            started, status = time.perf_counter(), 200
            metadata = dict(context.invocation_metadata() or ())
            infers = name == "ModelInfer"
            tracing = self._engine.observing.tracing if infers else untraced
            waiting = self._engine.metrics.under_way.track_inprogress() if infers else contextlib.nullcontext()
            with waiting, tracing(model, metadata.get("traceparent")) as traced:
                try:
                    if self._engine.draining.begun.is_set():
                        raise BusyError(_ENDS)
                    if name not in _HEALTH:
                        self._engine.access(metadata.get("authorization"), model)
                    with self._cancelled_at_the_end():
                        return await method(request)
                except RefusedError as refusal:
                    status = refusal.status
                    await context.abort(_CODES.get(status, grpc.StatusCode.UNAVAILABLE), str(refusal))
                except asyncio.CancelledError:
                    status = ClientGoneError.status
                    if self._engine.draining.over:  # otherwise the client has cancelled it
                        status, self._engine.draining.overdue = 503, True
                        await context.abort(grpc.StatusCode.UNAVAILABLE, _ENDED)
                    raise
                except Exception:
                    status = 500
                    _log.exception("A request failed")
                    await context.abort(grpc.StatusCode.INTERNAL, "the model failed; the server's log says why")
                finally:
                    traced(status)
                    if infers:
                        known = model if model in self._repository.models else ""
                        self._engine.metrics.answered(known, status, time.perf_counter() - started)

        return answer

    @contextlib.contextmanager
    def _cancelled_at_the_end(self) -> Generator[None]:
        """Marks the part of a call that the shutdown may cancel. Later parts, such as sending a refusal, are not
        cancelled.
        """
        call = asyncio.current_task()
        assert call is not None
        self.under_way.add(call)
        try:
            yield
        finally:
            self.under_way.discard(call)

    async def _live(self, request: Any) -> Any:
        return MESSAGES["ServerLiveResponse"](live=True)

    async def _ready(self, request: Any) -> Any:
        return MESSAGES["ServerReadyResponse"](ready=self._repository.ready)

    async def _server(self, request: Any) -> Any:
        from estimator_exporters import __version__

        return MESSAGES["ServerMetadataResponse"](name="estimator", version=__version__, extensions=["statistics"])

    async def _model_ready(self, request: Any) -> Any:
        self._repository.get(request.name, request.version or None)
        return MESSAGES["ModelReadyResponse"](ready=True)

    async def _model(self, request: Any) -> Any:
        version, model = self._repository.get(request.name, request.version or None)
        versions = [version] if request.version else sorted(self._repository.models[request.name])
        response = MESSAGES["ModelMetadataResponse"](name=request.name, versions=versions, platform="jax")
        for key, feature in model.inputs.items():
            response.inputs.add(**tensor_metadata(key, feature))
        for key, feature in model.outputs.items():
            response.outputs.add(**tensor_metadata(key, feature))
        return response

    async def _statistics(self, request: Any) -> Any:
        found = self._repository.statistics(request.name or None, request.version or None)
        return json_format.ParseDict({"model_stats": found}, MESSAGES["ModelStatisticsResponse"]())

    async def _infer(self, request: Any) -> Any:
        engine, name = self._engine, request.model_name
        size = request.ByteSize()
        with engine.budget.lease() as lease:
            lease.grow(size)
            version, model = self._repository.get(name, request.model_version or None)
            began = time.perf_counter_ns()
            try:
                inputs = await engine.do(lambda: inputs_of(request, engine.limits.values), size > INLINE)
                decoded = time.perf_counter_ns()
                outputs = await model.infer(inputs)
                ran = time.perf_counter_ns()
                lease.grow(sum(array.nbytes for array in outputs.values()))
                response = await engine.do(lambda: response_of(request, name, version, outputs), size > INLINE)
            except Exception:
                model.statistics.fail.add(time.perf_counter_ns() - began)
                raise
            model.statistics.answered(began, decoded, ran, time.perf_counter_ns())
            return response
