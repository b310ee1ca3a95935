"""A server process: uvicorn with the application, one socket, and a graceful shutdown."""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

import uvicorn

from estimator_core.errors import ArgumentError
from estimator_exporters.serving.access import Access, everybody
from estimator_exporters.serving.app import Application, Beside, make_app
from estimator_exporters.serving.budget import Budget
from estimator_exporters.serving.connections import connections
from estimator_exporters.serving.decoding import Decoding
from estimator_exporters.serving.heap import return_large_memory
from estimator_exporters.serving.inference import Engine
from estimator_exporters.serving.limits import Limits
from estimator_exporters.serving.metrics import Metrics
from estimator_exporters.serving.observing import NOBODY, Observing
from estimator_exporters.serving.repository import Repository, Source
from estimator_exporters.serving.shutdown import EndingServer
from estimator_exporters.serving.tls import Tls

_WAITING = 2048  # connections that the system queues until they are accepted; uvicorn requests as many


def serve(
    sources: Sequence[Source],
    *,
    host: str,
    port: int,
    batch_sizes: Sequence[int],
    versions: int,
    limits: Limits,
    drain_seconds: int,
    announce: Callable[[str], None],
    access: Access = everybody,
    tls: Tls | None = None,
    grpc_port: int | None = None,
    observing: Observing = NOBODY,
    renew: Sequence[Callable[[], None]] = (),
) -> None:
    """Serves until SIGTERM or SIGINT. Then it accepts no new connections and completes the requests in progress.

    A second signal ends the process at once. If a model still runs `drain_seconds` after the first signal, the process
    ends with exit code 1, because its requests are lost.

    Args:
        sources: the locations of the models.
        host: the address to listen on.
        port: the port to listen on. 0 selects a free port.
        batch_sizes: the batch sizes to compile.
        versions: the number of newest versions to serve of each model.
        limits: the limits on the size and number of requests.
        drain_seconds: the seconds that requests in progress have at the end.
        announce: called with the address once every model is ready.
        access: the rule that decides which client may use which model.
        tls: the certificates, or None for no encryption.
        grpc_port: the port to listen on for gRPC. 0 selects a free port. None: no gRPC.
        observing: the observers that are told about each request.
        renew: functions that are called at each check for new exports. They read changed files again.

    Raises:
        ArgumentError: the address cannot be used.
    """
    engine = new_engine(sources, sorted(batch_sizes), versions, limits, access, observing)
    renewals = list(renew)
    listening = _bound(host, port, "--port")
    if grpc_port:
        try:
            _bound(host, grpc_port, "--grpc-port").close()  # gRPC itself would fail only after the models are loaded
        except ArgumentError:
            listening.close()
            raise
    address = f"{'https' if tls else 'http'}://{host}:{listening.getsockname()[1]}"
    addresses = [address]
    refused: list[ArgumentError] = []
    beside: Beside = contextlib.nullcontext
    if grpc_port is not None:
        from estimator_exporters.serving.grpc_server import grpc_serving

        def told(chosen: int) -> None:
            addresses.append(f"grpc://{host}:{chosen}")

        def beside() -> contextlib.AbstractAsyncContextManager[None]:
            return _entered(grpc_serving(engine, host, grpc_port, tls, told), refused.append)

    def renew_all() -> None:
        for one in renewals:
            one()

    def loaded() -> None:
        try:
            listening.listen(_WAITING)  # who reads the address may connect at once
        except OSError as error:  # two sockets may bind one address, but only the first to finish loading can listen
            refused.append(_taken(host, port, "--port", error))
        if not refused:
            announce(" and ".join(addresses))

    app = make_app(engine, loaded, beside, renew_all)
    more = {} if tls is None else tls.arguments()
    config = configuration(app, engine, timeout_graceful_shutdown=drain_seconds, **more)
    config.load()  # unreadable certificates are reported before the models are loaded
    if tls is not None and config.ssl is not None:
        renewals.append(tls.renewal(config.ssl))
    server = EndingServer(
        config,
        drain_seconds=drain_seconds,
        ending=lambda: engine.draining.begin(drain_seconds),
        overdue=lambda: engine.draining.overdue,
        loading=lambda: engine.repository.loading,
        close=observing.close,
        refused=refused,
    )
    # The thread that runs batches needs the interpreter lock after each call of XLA. With the default of 5 ms, it would
    # wait for the event loop longer than a small model runs.
    sys.setswitchinterval(2e-4)
    return_large_memory()
    try:
        server.run(sockets=[listening])
    finally:
        observing.close()


@contextlib.asynccontextmanager
async def _entered(
    context: contextlib.AbstractAsyncContextManager[None], refused: Callable[[ArgumentError], None]
) -> AsyncGenerator[None]:
    """Enters a context of the application. Passes on a refusal, because uvicorn would show a traceback for an error."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(context)
        except ArgumentError as error:
            refused(error)
        yield


def _bound(host: str, port: int, option: str) -> socket.socket:
    """Returns a socket that is bound to an address and does not listen yet.

    Raises:
        ArgumentError: the address cannot be used.
    """
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        raise _taken(host, port, option, error) from error
    return found


def _taken(host: str, port: int, option: str, error: OSError) -> ArgumentError:
    return ArgumentError(f"Cannot listen on {host}:{port}: {error}. Choose another {option}.")


def new_engine(
    sources: Sequence[Source],
    batch_sizes: Sequence[int],
    versions: int,
    limits: Limits,
    access: Access = everybody,
    observing: Observing = NOBODY,
) -> Engine:
    """Returns the engine that answers requests, without loaded models."""
    budget = Budget(limits.memory_bytes)
    metrics = Metrics(tuple(batch_sizes), budget)
    repository = Repository(sources, batch_sizes, versions, metrics, observing.recorder)
    decoding = Decoding()
    return Engine(
        repository=repository,
        metrics=metrics,
        limits=limits,
        budget=budget,
        decoding=decoding,
        access=access,
        observing=observing,
    )


def configuration(app: Application, engine: Engine, **more: Any) -> uvicorn.Config:
    """Returns the configuration of uvicorn for the application. `more` are further arguments of uvicorn."""
    return uvicorn.Config(
        app,
        # The default configuration of uvicorn closes every log handler of the process, and some handlers close their
        # stream.
        log_config=None,
        log_level="warning",
        access_log=False,
        http=connections(engine.limits, engine.budget),
        ws="none",
        proxy_headers=False,
        timeout_keep_alive=30,
        **more,
    )
