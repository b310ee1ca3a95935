"""A process that has imported the libraries, and runs pytest in a fork of itself for each request.

Imports take longer than most tests. A request is a line of JSON on stdin, `{"arguments": [...], "output": path,
"seconds": limit}`. The answer is the exit status of pytest as a line on stdout. It is negative for a signal.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import time
from importlib.metadata import entry_points

PROFILE = "mutants"
#: No package of ours, and no library whose presence changes our behaviour. Adapters check which libraries are imported.
_LIBRARIES = (
    "jax.numpy",
    "jax.experimental.multihost_utils",
    "optax",
    "orbax.checkpoint",
    "hypothesis.extra.numpy",
    "pytest",
    "tensorboardX.event_file_writer",
)


def serve() -> None:
    """Answers requests until stdin ends."""
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for plugin in entry_points(group="pytest11"):
        plugin.load()
    hypothesis = importlib.import_module("hypothesis")
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)  # one failure is enough: no shrinking
    ci = hypothesis.settings.get_profile("ci")
    hypothesis.settings.register_profile(PROFILE, ci, phases=phases)
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(request["arguments"], request["output"])
        print(_status_of(child, request["seconds"]), flush=True)


def _run(arguments: list[str], output: str) -> None:
    """Runs pytest in the child, and never returns."""
    status = 70
    try:
        os.setsid()  # processes that the tests start end with them
        target = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for number in (1, 2):
            os.dup2(target, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        importlib.invalidate_caches()
        import pytest

        status = int(pytest.main(arguments))
    except BaseException as error:
        os.write(2, f"ERROR - {type(error).__name__}: {error}\n".encode())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(ValueError, OSError):
                stream.flush()
        os._exit(status)


def _status_of(child: int, seconds: float) -> int:
    deadline, runner = time.monotonic() + seconds, os.getppid()
    try:
        while time.monotonic() <= deadline and os.getppid() == runner:
            found, status = os.waitpid(child, os.WNOHANG)
            if found:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
    finally:  # also after a kill of the runner, or a Ctrl-C, which the group of the child does not receive
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # processes that a failing test has left running
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    serve()
