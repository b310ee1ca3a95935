"""Sends servers health requests in turn: `python probe.py PORT...`, until its standard input ends.

Prints JSON: the seconds that each answer took, by port. One thread asks, with connections of its own.
"""

import http.client
import json
import select
import sys
import time


def seconds(connection):
    started = time.perf_counter()
    connection.request("GET", "/v2/health/live")
    answer = connection.getresponse()
    answer.read()
    assert answer.status == 200
    return time.perf_counter() - started


if __name__ == "__main__":
    connections = {port: http.client.HTTPConnection("127.0.0.1", int(port), timeout=60) for port in sys.argv[1:]}
    found = {port: [] for port in connections}
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0.01)[0]:
        for port, connection in connections.items():
            found[port].append(seconds(connection))
    print(json.dumps(found))
