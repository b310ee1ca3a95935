"""Small programs that launchers start in the tests."""

import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

#: Ends as the `<role>=<what>` arguments say, with a status, a signal or "freeze": once, or always with `!`.
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

#: Takes half a second to save after SIGTERM. A second SIGTERM ends it at once.
SAVES = """
import os, signal, sys, time
def save(*_):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    time.sleep(0.5)
    print("saved", flush=True)
    os._exit(75)

signal.signal(signal.SIGTERM, save)
print(os.getpid(), flush=True)
for ready in sys.argv[1:]:
    open(ready, "w").close()
time.sleep(30)
"""


def shell(script: str, code: str = SAVES) -> Sequence[str]:
    """Returns the words of a shell script. `$PROGRAM` stands for a Python program, and the shell stays its parent."""
    return ("sh", "-c", f"{script.replace('$PROGRAM', shlex.join((sys.executable, '-c', code)))}; exit $?")


def runs(pid: int) -> bool:
    """Returns whether a process runs. A process that has ended but was not waited for does not run."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] not in "ZX"


def launch(*words: str, timeout: float = 120, env: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """Runs `estimator launch` with these words."""
    command = [sys.executable, "-m", "estimator_core._cli.main", "launch", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False, env=env)


def python(code: str, *arguments: str) -> Sequence[str]:
    """Returns the words of a command that runs a Python program."""
    return ("--", sys.executable, "-c", code, *arguments)


def until(condition: Callable[[], object], secs: float = 60) -> None:
    """Waits until a condition is true."""
    deadline = time.monotonic() + secs
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.05)
