"""An attacked server, an idle server for comparison, and a probe that measures the answering times of both."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[3]


class Attacked:
    """A server process."""

    def __init__(self, process, port):
        self.process, self.port = process, port
        self.before = self.memory("VmRSS")

    def memory(self, what="VmHWM"):
        """The bytes that the process holds now (VmRSS), or has held at most (VmHWM)."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        (line,) = (line for line in lines if line.startswith(f"{what}:"))
        return int(line.split()[1]) * 1024

    @property
    def grown(self):
        """The largest number of bytes that the process held, minus what it held before the first request."""
        return self.memory() - self.before

    def connect(self, seconds=60):
        """A connection to the server."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=seconds)


@contextlib.contextmanager
def child(*command):
    """A Python process. It ends when its standard input ends."""
    sources = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sources)}
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, *command], stdin=pipe, stdout=pipe, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.stdin.close()


@contextlib.contextmanager
def serving(*sources, **limits):
    """A server process. It serves the models of the sources in addition to the attacked models."""
    with child(str(HERE / "serve.py"), json.dumps(limits), *sources) as process:
        yield Attacked(process, int(process.stdout.readline()))


@contextlib.contextmanager
def bare():
    """A bare server of asyncio."""
    with child(str(HERE / "bare.py")) as process:
        yield Attacked(process, int(process.stdout.readline()))


@contextlib.contextmanager
def probed(*servers):
    """Yields a list. After the block it contains the sorted answering times of each server."""
    found = []
    with child(str(HERE / "probe.py"), *(str(server.port) for server in servers)) as process:
        assert process.stdout.readline() == "ready\n"
        yield found
        process.stdin.close()
        times = json.loads(process.stdout.read())
    found += [sorted(times[str(server.port)]) for server in servers]


def quantile(times, part):
    """The value below which the given part of the sorted times lies."""
    return times[min(len(times) - 1, int(part * len(times)))]
