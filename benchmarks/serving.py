"""Latency and throughput of `estimator serve` beside a plain handler that calls the compiled function for each request.

    python benchmarks/serving.py [--seconds 10] [--width 1024]

Both run in a process of their own, on the same export: dense layers of the given width, one row a request, binary
    tensors. Needs
estimator-exporters[serve].
"""

import argparse
import asyncio
import itertools
import json
import multiprocessing
import socket
import statistics
import tempfile
import threading
import time

import numpy as np

FEATURES = 64


def make_export(directory, width):
    """An export of a network of three layers with random weights."""
    import jax.numpy as jnp

    from estimator_core.export import ExportRequest, Feature, SignatureSpec
    from estimator_core.export.directories import new_export
    from estimator_exporters.stablehlo import StableHLOFormat

    generator = np.random.default_rng(0)
    sizes = [FEATURES, width, width, 8]
    variables = {
        f"kernel_{i}": (generator.normal(size=shape) / np.sqrt(shape[0])).astype(np.float32)
        for i, shape in enumerate(itertools.pairwise(sizes))
    }

    def network(variables, inputs):
        y = inputs["x"]
        for name in sorted(variables):
            y = jnp.tanh(y @ variables[name])
        return {"y": y}

    signature = SignatureSpec(
        name="serving_default",
        method="predict",
        inputs={"x": Feature((None, FEATURES))},
        outputs={"y": Feature((None, 8))},
        function=network,
    )
    with new_export(directory) as (temporary, final):
        StableHLOFormat().write(
            ExportRequest(signatures={"serving_default": signature}, variables=variables), temporary
        )
    return str(final[0])


def serve_batched(path, port):
    """The server of the package."""
    from estimator_core.cli.main import main

    main(["serve", f"m={path}", "--port", str(port)])


def serve_plain(path, port):
    """The same protocol and web server; each request calls the function by itself."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    import estimator_core as ec
    from estimator_exporters.serving.protocol import HEADER_LENGTH, build_response, parse_request

    signature = ec.export.load(path).signatures["serving_default"]
    signature(x=np.zeros((1, FEATURES), np.float32))

    async def infer(request: Request) -> Response:
        parsed = parse_request(await request.body(), request.headers.get(HEADER_LENGTH))
        results = await asyncio.to_thread(lambda: signature(**parsed.inputs))
        content, headers = build_response(parsed, "m", "1", results)
        return Response(content, headers=headers)

    async def live(request: Request) -> Response:
        return Response()

    routes = [
        Route("/v2/models/m/infer", infer, methods=["POST"]),
        Route("/v2/health/ready", live),
        Route("/metrics", live),
    ]
    uvicorn.run(Starlette(routes=routes), port=port, log_level="warning", access_log=False)


def message(row):
    """The bytes of one HTTP request."""
    chunk = np.full((1, FEATURES), row, np.float32).tobytes()
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, FEATURES], "parameters": {"binary_data_size": len(chunk)}}
    header = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    head = (
        f"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {len(header) + len(chunk)}\r\n"
        f"Inference-Header-Content-Length: {len(header)}\r\n\r\n"
    )
    return head.encode() + header + chunk


def ask(stream, content):
    """Status of one request on an open connection."""
    stream.write(content)
    stream.flush()
    status = int(stream.readline().split()[1])
    length = 0
    while (line := stream.readline().strip()) != b"":
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    stream.read(length)
    return status


def load(port, clients, seconds):
    """Latencies of all requests of some clients that ask as fast as they are answered, and the statuses of failures."""
    latencies, failures, end = [], [], time.perf_counter() + seconds

    def client(number):
        content = message(number)
        with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rwb") as stream:
            while time.perf_counter() < end:
                started = time.perf_counter()
                status = ask(stream, content)
                latencies.append(time.perf_counter() - started)
                if status != 200:
                    failures.append(status)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return latencies, failures


def batch_sizes(port):
    """How many batches of each size were run, from the server's own metrics."""
    import urllib.request

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    found = [line for line in lines if line.startswith("estimator_batch_size_bucket") and "+Inf" not in line]
    counts = {float(line.split('le="')[1].split('"')[0]): float(line.rsplit(" ", 1)[1]) for line in found}
    sizes = sorted(counts)
    return {int(size): int(counts[size] - (counts[sizes[i - 1]] if i else 0)) for i, size in enumerate(sizes)}


def wait_until_ready(port):
    """Until the server answers."""
    import urllib.error
    import urllib.request

    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready"):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 64])
    args = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as directory:
        path = make_export(directory, args.width)
        print("| server | clients | requests/s | p50 ms | p99 ms | requests | failed |")
        print("|---|---|---|---|---|---|---|")
        for name, target in (("plain handler", serve_plain), ("estimator serve", serve_batched)):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            process = context.Process(target=target, args=(path, port))
            process.start()
            try:
                wait_until_ready(port)
                for clients in args.clients:
                    load(port, clients, min(1.0, args.seconds))
                    latencies, failures = load(port, clients, args.seconds)
                    cuts = statistics.quantiles(latencies, n=100)
                    rate = len(latencies) / args.seconds
                    print(
                        f"| {name} | {clients} | {rate:.0f} | {cuts[49] * 1e3:.2f} | {cuts[98] * 1e3:.2f} "
                        f"| {len(latencies)} | {len(failures)} |",
                        flush=True,
                    )
                if target is serve_batched:
                    print("\nbatches by padded size:", batch_sizes(port))
            finally:
                process.terminate()
                process.join()


if __name__ == "__main__":
    main()
