"""Mixed requests under attacks: `python -m plugins.exporters.tests.attacks.mixed [REQUESTS]`; `nox -s server_attacks`.

Prints what happened: requests by kind, how often the server said that it is busy, the 99th percentile of its answers
to "are you alive" beside an idle server, and how much memory it held beyond the budget. Ends with 1 where a good
request was not answered once and right, or a limit was broken.
"""

import collections
import gzip
import http.client
import itertools
import json
import struct
import sys
import threading
import time

from plugins.exporters.tests.attacks.kinds import ATTACKS, MEGABYTE
from plugins.exporters.tests.attacks.processes import probed, quantile, serving

BUDGET, SPARE, IN_TIME = 256 * MEGABYTE, 200 * MEGABYTE, 0.1
CLIENTS = 4
JSON_HEAD = {"Content-Type": "application/json"}


def as_json(number):
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [number, 0.5]}]}
    return "/v2/models/echo/infer", json.dumps(body).encode(), JSON_HEAD, lambda found: floats(found) == [number, 0.5]


def compressed(number):
    path, body, headers, right = as_json(number)
    return path, gzip.compress(body), {**headers, "Content-Encoding": "gzip"}, right


def binary(number):
    head = {"name": "x", "datatype": "FP32", "shape": [1, 2], "parameters": {"binary_data_size": 8}}
    text = json.dumps({"inputs": [head]}).encode()
    headers = {"Inference-Header-Content-Length": str(len(text))}
    values = struct.pack("<2f", number, 0.5)
    return "/v2/models/echo/infer", text + values, headers, lambda found: floats(found) == [number, 0.5]


def text(number):
    body = {"inputs": [{"name": "x", "datatype": "BYTES", "shape": [1], "data": [f"t{number}"]}]}
    right = lambda found: json.loads(found)["outputs"][0]["data"] == [f"t{number}"]  # noqa: E731
    return "/v2/models/text/infer", json.dumps(body).encode(), JSON_HEAD, right


def tensorflow(number):
    body = json.dumps({"instances": [[number, 0.5]]}).encode()
    right = lambda found: json.loads(found)["predictions"] == [[number, 0.5]]  # noqa: E731
    return "/v1/models/echo:predict", body, JSON_HEAD, right


def wrong(number):
    return "/v2/models/echo/infer", b'{"inputs": [', JSON_HEAD, 400


def unknown(number):
    return "/v2/models/nobody/infer", b"{}", JSON_HEAD, 404


KINDS = (as_json, compressed, binary, text, tensorflow, wrong, unknown)


def floats(found):
    return json.loads(found)["outputs"][0]["data"]


class Counts:
    """What clients saw."""

    def __init__(self):
        self.done, self.busy, self.faults = collections.Counter(), 0, []
        self.lock = threading.Lock()


def client(server, numbers, counts):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    for number in numbers:
        kind = KINDS[number % len(KINDS)]
        path, body, headers, expected = kind(number)
        while True:
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
            if answer.status not in (429, 503):
                break
            with counts.lock:
                counts.busy += 1
            time.sleep(float(answer.headers["Retry-After"]) / 20)
        right = answer.status == expected if isinstance(expected, int) else answer.status == 200 and expected(content)
        with counts.lock:
            counts.done[kind.__name__] += 1
            if not right:
                counts.faults.append((kind.__name__, number, answer.status, content[:200]))


def attacking(server, until, made):
    for attack in itertools.cycle(ATTACKS):
        if until.is_set():
            return
        attack(server)
        made[attack.__name__] += 1


def run(requests):
    """The figures of one run, by name."""
    counts, made, over = Counts(), collections.Counter(), threading.Event()
    began = time.monotonic()
    with serving(memory_bytes=BUDGET, body_seconds=5) as server, serving() as idle, probed(server, idle) as times:
        clients = [
            threading.Thread(target=client, args=(server, range(first, requests, CLIENTS), counts))
            for first in range(CLIENTS)
        ]
        attacker = threading.Thread(target=attacking, args=(server, over, made))
        for thread in (*clients, attacker):
            thread.start()
        for thread in clients:
            thread.join()
        over.set()
        attacker.join()
        beyond = server.grown - BUDGET
    attacked, alone = times
    return {
        "requests": dict(counts.done),
        "seconds": round(time.monotonic() - began, 1),
        "told busy and asked again": counts.busy,
        "wrong or unanswered": requests - sum(counts.done.values()) + len(counts.faults),
        "faults": counts.faults[:5],
        "attacks": dict(made),
        "liveness p99, attacked, ms": round(quantile(attacked, 0.99) * 1e3, 1),
        "liveness p99, idle beside it, ms": round(quantile(alone, 0.99) * 1e3, 1),
        "memory beyond the budget, MB": round(beyond / MEGABYTE, 1),
    }


def broken(found):
    """Which limits a run broke."""
    late = found["liveness p99, attacked, ms"] - found["liveness p99, idle beside it, ms"]
    said = [f"liveness is {late:.0f} ms later than that of an idle server"] if late >= IN_TIME * 1e3 else []
    if found["memory beyond the budget, MB"] * MEGABYTE >= SPARE:
        said.append("memory is beyond the budget and 200 MB")
    if found["wrong or unanswered"]:
        said.append("requests were answered wrongly or not at all")
    return said


def main(requests):
    found = run(requests)
    for name, value in found.items():
        print(f"{name}: {value}", flush=True)
    for line in broken(found):
        print(f"BROKEN: {line}", flush=True)
    return 1 if broken(found) else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
