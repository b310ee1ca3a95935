"""Serve exports over HTTP (Open Inference Protocol: KServe V2 with JSON or binary tensors).

    estimator serve runs/digits/export --port 8080
    curl localhost:8080/v2/models/final

DIRECTORY is an export, a directory of time-stamped exports, or <model_dir>/export with the directories of several
exporters. The newest export is served, and later ones as they appear. NAME=DIRECTORY sets the name of the model.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
from pathlib import Path
from typing import TYPE_CHECKING

from estimator_core.errors import ArgumentError

if TYPE_CHECKING:
    from estimator_exporters.serving.observing import Observing


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument(
        "exports", nargs="+", metavar="DIRECTORY", help="DIRECTORY or NAME=DIRECTORY; URLs are accepted"
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=int, default=8080, help="port to listen on; 0: any (default: 8080)")
    parser.add_argument("--grpc-port", type=int, help="port for gRPC; 0: any (default: no gRPC)")
    parser.add_argument(
        "--tokens", type=Path, metavar="FILE", help="JSON list of tokens and the models that they allow"
    )
    parser.add_argument("--tls-cert", type=Path, metavar="FILE", help="certificate chain of the server (PEM)")
    parser.add_argument("--tls-key", type=Path, metavar="FILE", help="private key of the certificate (PEM)")
    parser.add_argument(
        "--tls-client-ca", type=Path, metavar="FILE", help="authority that signs the certificates of clients (PEM)"
    )
    parser.add_argument("--allow-anyone", action="store_true", help="serve other machines without authentication")
    parser.add_argument(
        "--batch-sizes", default="1,2,4,8,16,32", help="batch sizes to compile in advance (default: %(default)s)"
    )
    parser.add_argument(
        "--versions", type=int, default=1, help="number of newest versions to serve of each model (default: 1)"
    )
    parser.add_argument("--max-body-mb", type=float, default=64, help="largest request in MB (default: 64)")
    parser.add_argument(
        "--memory-mb", type=float, default=1024, help="memory of all requests together in MB (default: 1024)"
    )
    parser.add_argument(
        "--max-values", type=int, default=2**23, help="largest number of values in a JSON request (default: 2**23)"
    )
    parser.add_argument("--body-seconds", type=float, default=30, help="seconds to send a request (default: 30)")
    parser.add_argument(
        "--max-requests", type=int, default=256, help="concurrent requests; further ones get status 503 (default: 256)"
    )
    parser.add_argument(
        "--poll-seconds", type=float, default=2, help="seconds between checks for new exports (default: 2)"
    )
    parser.add_argument("--request-log", type=Path, metavar="DIR", help="directory for a sample of the received rows")
    parser.add_argument(
        "--request-share", type=float, default=0.01, help="fraction of the rows to write (default: 0.01)"
    )
    parser.add_argument(
        "--request-mask", default="", metavar="NAMES", help="comma-separated columns whose values are not written"
    )
    parser.add_argument(
        "--log-format", choices=("text", "json"), default="text", help="format of log lines (default: text)"
    )
    parser.add_argument("--traces", action="store_true", help="send a trace of each request with OpenTelemetry (OTLP)")
    parser.add_argument(
        "--drain-seconds", type=int, default=30, help="seconds to finish requests at shutdown (default: 30)"
    )


def run(args: argparse.Namespace) -> int:
    """Serves until a signal stops it."""
    missing = [name for name in ("starlette", "uvicorn", "prometheus_client") if importlib.util.find_spec(name) is None]
    if missing:
        raise ArgumentError(f"Serving needs {', '.join(missing)}. Install it: pip install 'estimator-exporters[serve]'")
    if args.grpc_port is not None and any(importlib.util.find_spec(name) is None for name in ("grpc", "google")):
        raise ArgumentError("--grpc-port needs grpcio. Install it: pip install 'estimator-exporters[serve,grpc]'")
    sizes = _sizes(args.batch_sizes)
    for name in ("versions", "max_requests", "max_body_mb", "memory_mb", "max_values", "body_seconds", "poll_seconds"):
        if not 0 < getattr(args, name) < math.inf:
            raise ArgumentError(f"--{name.replace('_', '-')} must be positive, given: {getattr(args, name)}.")
    if args.drain_seconds < 0:
        raise ArgumentError(f"--drain-seconds must not be negative, given: {args.drain_seconds}.")
    for name in ("port", "grpc_port"):
        if not 0 <= (getattr(args, name) or 0) < 2**16:
            raise ArgumentError(f"--{name.replace('_', '-')} must be from 0 to 65535, given: {getattr(args, name)}.")
    if args.grpc_port and args.grpc_port == args.port:
        raise ArgumentError(f"--grpc-port and --port must differ, given: {args.port} for both.")
    from estimator_exporters.serving.access import check_reachable, everybody, renewed_access
    from estimator_exporters.serving.limits import Limits
    from estimator_exporters.serving.repository import sources_of
    from estimator_exporters.serving.server import serve
    from estimator_exporters.serving.telemetry import log_as_json
    from estimator_exporters.serving.tls import tls_from

    if args.log_format == "json":
        log_as_json()
    observing = _observing(args)
    tls = tls_from(args.tls_cert, args.tls_key, args.tls_client_ca)
    access, *renew = (everybody,) if args.tokens is None else renewed_access(args.tokens)
    protected = args.tokens is not None or args.tls_client_ca is not None
    check_reachable(args.host, protected=protected, insecure=args.allow_anyone)
    sources = sources_of(args.exports)

    def announce(address: str) -> None:
        print(f"Serving {', '.join(source.name for source in sources)} at {address} (SIGTERM ends)", flush=True)

    serve(
        sources,
        host=args.host,
        port=args.port,
        batch_sizes=sizes,
        versions=args.versions,
        limits=Limits(
            memory_bytes=int(args.memory_mb * 2**20),
            body_bytes=int(args.max_body_mb * 2**20),
            values=args.max_values,
            body_seconds=args.body_seconds,
            under_way=args.max_requests,
            poll_seconds=args.poll_seconds,
        ),
        drain_seconds=args.drain_seconds,
        announce=announce,
        access=access,
        tls=tls,
        grpc_port=args.grpc_port,
        observing=observing,
        renew=renew,
    )
    return 0


def _observing(args: argparse.Namespace) -> Observing:
    from estimator_exporters.serving.observing import Observing
    from estimator_exporters.serving.request_log import RequestLog, Sampling, unrecorded
    from estimator_exporters.serving.telemetry import traced, untraced

    if not 0 < args.request_share <= 1:
        raise ArgumentError(f"--request-share must be above 0 and up to 1, given: {args.request_share}.")
    masked = frozenset(name for name in args.request_mask.split(",") if name)
    if args.request_log is None and masked:
        raise ArgumentError("--request-mask is for --request-log DIR.")
    tracing = traced() if args.traces else untraced
    if args.request_log is None:
        return Observing(recorder=unrecorded, tracing=tracing)
    try:
        log = RequestLog(Sampling(directory=args.request_log, rate=args.request_share, masked=masked))
    except OSError as error:
        raise ArgumentError(f"--request-log: {args.request_log} cannot be created: {error}.") from error
    return Observing(recorder=log, tracing=tracing, close=log.close)


def _sizes(text: str) -> list[int]:
    try:
        sizes = sorted({int(part) for part in text.split(",")})
    except ValueError:
        sizes = []
    if not sizes or sizes[0] < 1:
        raise ArgumentError(f"--batch-sizes must be positive integers separated by commas, given: {text!r}.")
    return sizes
