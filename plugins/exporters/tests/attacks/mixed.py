"""Mixed requests under attacks: `python -m plugins.exporters.tests.attacks.mixed [REQUESTS]`; `nox -s server_attacks`.

Prints requests by kind, how often the server said that it is busy, and how much memory it held beyond the budget. It
prints the 99th percentile of its answers to "are you alive" beside that of a bare server of asyncio, and the load of
the machine. Exits with 1 if a good request was not answered exactly once and correctly, or if a limit was broken.
"""

import collections
import contextlib
import http.client
import itertools
import os
import re
import sys
import threading
import time

from plugins.exporters.tests.attacks.kinds import ATTACKS, MEGABYTE
from plugins.exporters.tests.attacks.processes import bare, probed, quantile, serving
from plugins.exporters.tests.attacks.requests import CANCELLED, KINDS, OF_ECHO

BUDGET, SPARE, IN_TIME = 256 * MEGABYTE, 200 * MEGABYTE, 0.1
CLIENTS = 8


class Counts:
    """The counts that the clients collect."""

    def __init__(self):
        self.done, self.busy, self.faults = collections.Counter(), 0, []
        self.lock = threading.Lock()


def client(server, numbers, counts):
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)) as connection:
        for number in numbers:
            kind = KINDS[number % len(KINDS)]
            while True:
                path, body, headers, expected = kind(number)
                connection.request("POST", path, body, headers)
                if expected is CANCELLED:
                    status, content = 0, b""
                    connection.close()
                    break
                answer = connection.getresponse()
                status, content = answer.status, answer.read()
                if expected == 413:  # otherwise the server would wait for the rest of its body
                    connection.close()
                if status not in (429, 503):
                    break
                with counts.lock:
                    counts.busy += 1
                time.sleep(float(answer.headers["Retry-After"]) / 20)
            right = status == 200 and expected(content) if callable(expected) else expected in (status, CANCELLED)
            with counts.lock:
                counts.done[kind.__name__] += 1
                if not right:
                    counts.faults.append((kind.__name__, number, status, content[:200]))


def answered(server, model):
    """The number of requests of a model that the server has answered with 200, according to its own counter."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return int(float(re.search(rf'estimator_requests_total{{model="{model}",status="200"}} (\S+)', text)[1]))


def twice(server, done):
    """The good requests that were answered twice or never. A cancelled one may have one answer or none."""
    good = sum(done[name] for name in OF_ECHO)
    beyond = answered(server, "echo") - good
    return max(beyond - done["cancelled"], -beyond, 0) + abs(answered(server, "text") - done["text"])


def attacking(server, until, made):
    for attack in itertools.cycle(ATTACKS):
        if until.is_set():
            return
        attack(server)
        made[attack.__name__] += 1


def run(requests):
    """The figures of one run by name."""
    counts, made, over = Counts(), collections.Counter(), threading.Event()
    began, load = time.monotonic(), os.getloadavg()[0]
    with serving(memory_bytes=BUDGET, body_seconds=5) as server, bare() as control, probed(server, control) as times:
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
        repeated = twice(server, counts.done)
        beyond, held = server.grown - BUDGET, server.memory("VmRSS") - server.before
    attacked, alone = times
    return {
        "requests": dict(counts.done),
        "seconds": round(time.monotonic() - began, 1),
        "load of the machine, before and after": (round(load, 1), round(os.getloadavg()[0], 1)),
        "cores": os.cpu_count(),
        "told busy and asked again": counts.busy,
        "wrong or unanswered": requests - sum(counts.done.values()) + len(counts.faults),
        "answered twice or never, by the server's own count": repeated,
        "faults": counts.faults[:5],
        "attacks": dict(made),
        "liveness, times asked": len(attacked),
        **{
            f"liveness p{name}, ms: attacked, bare asyncio beside it": (ms(attacked, part), ms(alone, part))
            for name, part in (("50", 0.5), ("99", 0.99))
        },
        "memory beyond the budget at most, MB": round(beyond / MEGABYTE, 1),
        "memory held after it, MB": round(held / MEGABYTE, 1),
    }


def ms(times, part):
    return round(quantile(times, part) * 1e3, 1)


def broken(found):
    """The limits that a run broke."""
    attacked, alone = found["liveness p99, ms: attacked, bare asyncio beside it"]
    late = attacked - alone
    said = [f"liveness is {late:.0f} ms later than that of a bare server"] if late >= IN_TIME * 1e3 else []
    if found["memory beyond the budget at most, MB"] * MEGABYTE >= SPARE:
        said.append("memory is beyond the budget and 200 MB")
    if found["wrong or unanswered"] or found["answered twice or never, by the server's own count"]:
        said.append("requests were answered wrongly, twice or not at all")
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
