"""Latency and throughput of `estimator serve` beside a plain handler that calls the compiled function for each request.

    uv run python benchmarks/serving.py [--seconds 8] [--clients 1 64] [--rounds 15] [--json FILE]

The model is a transformer of BERT-tiny's size on 32 tokens, with one row per request, as binary tensors. Servers and
clients are separate processes; the servers take turns in random order. The plain handler runs in two forms: a call in a
thread, and on the event loop. Needs estimator-exporters[serve].
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from _http_load import row_of
from _report import report, write
from _serving_model import make_export
from _side_by_side import compared

HERE = Path(__file__).parent
OURS = "estimator serve"


def commands(export, port):
    """Returns the command that starts each server."""
    plain = [sys.executable, str(HERE / "_plain_handler.py"), export, str(port)]
    ours = [str(Path(sys.executable).with_name("estimator")), "serve", f"m={export}", "--port", str(port)]
    return {"plain handler, threads": [*plain, "threads"], "plain handler, event loop": [*plain, "loop"], OURS: ours}


@contextmanager
def running(command, port):
    """Runs a server process, and yields it when it is ready."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            wait_until_ready(process, port)
            yield process
        finally:
            process.terminate()


def wait_until_ready(process, port):
    """Waits until the server answers."""
    while process.poll() is None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready"):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.1)
    raise SystemExit("the server did not start")


def loaded(port, clients, seconds):
    """Returns the measurements of the clients."""
    command = [sys.executable, str(HERE / "_http_load.py"), str(port), str(clients), str(seconds)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def batch_sizes(port):
    """Returns the number of batches of each padded size, from the server's own metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    found = [line for line in lines if line.startswith("estimator_batch_size_bucket") and "+Inf" not in line]
    counts = {float(line.split('le="')[1].split('"')[0]): float(line.rsplit(" ", 1)[1]) for line in found}
    sizes = sorted(counts)
    return {int(size): int(counts[size] - (counts[sizes[i - 1]] if i else 0)) for i, size in enumerate(sizes)}


def greatest_difference(export, answers):
    """Returns the difference between the answers to the clients and separate calls of the function."""
    import estimator_core as ec

    signature = ec.export.load(export).signatures["serving_default"]
    greatest = 0.0
    for client, own in enumerate(answers):
        expected = signature(ids=row_of(client))["probabilities"]
        for answer in own:
            found = np.frombuffer(bytes.fromhex(answer)[-expected.nbytes :], expected.dtype)
            greatest = max(greatest, float(np.abs(found - expected[0]).max()))
    return greatest


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def measure(export, args):
    """Returns requests per second and latencies by server and clients, and further results of `estimator serve`."""
    rates, latencies, failed = defaultdict(list), defaultdict(list), defaultdict(int)
    seen = {"histogram": defaultdict(int), "difference": 0.0, "busy": 0.0}
    order = np.random.default_rng(0)
    for _ in range(args.rounds):
        for name in order.permutation(args.servers).tolist():
            port = free_port()
            with running(commands(export, port)[name], port):
                for clients in args.clients:
                    before = batch_sizes(port) if name == OURS else {}
                    found = loaded(port, clients, args.seconds)
                    rates[name, clients].append(len(found["latencies"]) / args.seconds)
                    latencies[name, clients] += found["latencies"]
                    failed[name, clients] += len(found["failures"])
                    seen["busy"] = max(seen["busy"], found["busy"])
                    if name == OURS:
                        seen["difference"] = max(seen["difference"], greatest_difference(export, found["answers"]))
                        for size, count in batch_sizes(port).items():
                            seen["histogram"][clients, size] += count - before[size]
    return rates, latencies, failed, seen


def show(args, rates, latencies, failed, seen):
    """Prints one line per server, and returns further results of `estimator serve`."""
    print("| server | clients | requests/s, median of rounds | p50 ms | p99 ms | requests | failed |")
    print("|---|---|---|---|---|---|---|")
    for (name, clients), found in sorted(rates.items(), key=lambda item: item[0][1]):
        cuts = statistics.quantiles(latencies[name, clients], n=100)
        print(
            f"| {name} | {clients} | {statistics.median(found):.0f} | {cuts[49] * 1e3:.2f} | {cuts[98] * 1e3:.2f} "
            f"| {len(latencies[name, clients])} | {failed[name, clients]} |"
        )
    print(f"\n{os.cpu_count()} cores; the clients used {seen['busy']:.0%} of one core")
    notes = []
    for clients in args.clients:
        sizes = {size: count for (of, size), count in sorted(seen["histogram"].items()) if of == clients and count}
        notes.append(f"batches of {OURS} by padded size, {clients} clients: {sizes}")
        for name in args.servers:
            if name != OURS and OURS in args.servers:
                slower = statistics.median(latencies[OURS, clients]) / statistics.median(latencies[name, clients])
                notes.append(f"relative to {name}, {clients} clients: median latency x {slower:.2f}")
    return [*notes, f"greatest difference from unbatched answers: {seen['difference']:.1e}"]


def throughput(args, rates):
    """Returns the requests per second of `estimator serve` against those of the plain handlers."""
    seconds = {f"{name}, {clients} clients": [1 / rate for rate in found] for (name, clients), found in rates.items()}
    others = [name for name in args.servers if name != OURS and OURS in args.servers]
    pairs = [
        (f"{OURS}, {clients} clients", f"{name}, {clients} clients") for clients in args.clients for name in others
    ]
    return [compared(seconds, *pair) for pair in pairs]


def main():
    names = list(commands("", 0))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 64])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--servers", nargs="+", default=names, choices=names)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        rates, *others = measure(make_export(directory), args)
    notes = show(args, rates, *others)
    write(args.json, report("Requests a second, one row each", throughput(args, rates), steps=1, notes=notes))


if __name__ == "__main__":
    main()
