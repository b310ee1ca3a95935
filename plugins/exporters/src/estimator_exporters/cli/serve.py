"""Serve exports over HTTP (Open Inference Protocol: KServe V2 with JSON or binary tensors).

    estimator serve runs/digits/export --port 8080
    curl localhost:8080/v2/models/final

DIRECTORY is an export, a directory of time-stamped exports (the newest is served, and newer ones as they appear), or
<model_dir>/export with those of several exporters. NAME=DIRECTORY chooses the name of the model.
"""

from __future__ import annotations

import argparse
import importlib.util

from estimator_core.errors import ArgumentError


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments."""
    parser.add_argument("exports", nargs="+", metavar="DIRECTORY", help="DIRECTORY or NAME=DIRECTORY")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=int, default=8080, help="port to listen on; 0: any (default: 8080)")
    parser.add_argument("--batch-sizes", default="1,2,4,8,16,32", help="sizes compiled ahead (default: %(default)s)")
    parser.add_argument("--versions", type=int, default=1, help="newest versions of each model served (default: 1)")
    parser.add_argument("--max-body-mb", type=float, default=64, help="largest request (default: 64)")
    parser.add_argument("--body-seconds", type=float, default=30, help="time to send a request (default: 30)")
    parser.add_argument("--max-requests", type=int, default=256, help="requests at a time, more get 503 (default: 256)")
    parser.add_argument("--poll-seconds", type=float, default=2, help="between looks for new exports (default: 2)")
    parser.add_argument("--drain-seconds", type=int, default=30, help="to finish requests at the end (default: 30)")


def run(args: argparse.Namespace) -> int:
    """Serves until it is told to stop."""
    missing = [name for name in ("starlette", "uvicorn", "prometheus_client") if importlib.util.find_spec(name) is None]
    if missing:
        raise ArgumentError(f"Serving needs {', '.join(missing)}. Install it: pip install 'estimator-exporters[serve]'")
    sizes = _sizes(args.batch_sizes)
    for name in ("versions", "max_requests", "max_body_mb", "body_seconds", "poll_seconds"):
        if not getattr(args, name) > 0:
            raise ArgumentError(f"--{name.replace('_', '-')} must be positive, given: {getattr(args, name)}.")
    from estimator_exporters.serving.limits import Limits
    from estimator_exporters.serving.repository import sources_of
    from estimator_exporters.serving.server import serve

    sources = sources_of(args.exports)

    def announce(address: str) -> None:
        print(f"Serving {', '.join(source.name for source in sources)} at {address}/v2 (SIGTERM ends)", flush=True)

    serve(
        sources,
        host=args.host,
        port=args.port,
        batch_sizes=sizes,
        versions=args.versions,
        limits=Limits(
            body_bytes=int(args.max_body_mb * 2**20),
            body_seconds=args.body_seconds,
            under_way=args.max_requests,
            poll_seconds=args.poll_seconds,
        ),
        drain_seconds=args.drain_seconds,
        announce=announce,
    )
    return 0


def _sizes(text: str) -> list[int]:
    try:
        sizes = sorted({int(part) for part in text.split(",")})
    except ValueError:
        sizes = []
    if not sizes or sizes[0] < 1:
        raise ArgumentError(f"--batch-sizes must be positive integers with commas between, given: {text!r}.")
    return sizes
