"""Small programs that launchers start in the tests."""

import subprocess
import sys
import time
from collections.abc import Callable, Sequence

#: Ends as `<role>=<what>` words of its arguments say: a status, a signal, "freeze"; once, or always with `!`.
ENDS = """
import os, pathlib, signal, sys, time
me = os.environ.get("JAX_PROCESS_ID", "0")
mark = pathlib.Path(sys.argv[1] + "-" + me)
again = mark.exists()
mark.touch()
for word in sys.argv[2:]:
    who, what = word.split("=")
    if who == me and (what.endswith("!") or not again):
        what = what.rstrip("!")
        if what == "freeze":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif what.startswith("SIG"):
            os.kill(os.getpid(), getattr(signal, what))
        elif what.startswith("wait"):
            time.sleep(float(what[4:]))
        else:
            sys.exit(int(what))
print("done", flush=True)
"""


def launch(*words: str, timeout: float = 120, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """`estimator launch` with these words."""
    command = [sys.executable, "-m", "estimator_core._cli.main", "launch", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, env=env)


def python(code: str, *arguments: str) -> Sequence[str]:
    """The words of a Python program."""
    return ("--", sys.executable, "-c", code, *arguments)


def until(condition: Callable[[], object], secs: float = 60) -> None:
    """Waits for something."""
    deadline = time.monotonic() + secs
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)
