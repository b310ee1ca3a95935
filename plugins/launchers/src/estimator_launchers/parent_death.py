"""Runs a command while the process that started it lives: `python -m estimator_launchers.parent_death SECS COMMAND`.

Its standard input is a pipe of that process. The pipe closes however the process ends, even by SIGKILL. Then the
command and all processes that it has started are killed, because a new attempt may begin elsewhere, and two attempts
must not write to one directory. SIGTERM is passed on. SECS is the grace time of processes that the command leaves
running.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from estimator_launchers.family import Family

_POLL_SECS = 0.05


def main(grace_secs: float, command: list[str]) -> int:
    """Runs the command and returns its exit status, or 128 plus the number of the signal that ended it."""
    asked, let_go = threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked.set())
    try:
        family = Family(command, grace_secs=grace_secs)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.stderr.flush()
        return 127

    def hold() -> None:
        while os.read(0, 1):
            pass
        let_go.set()

    threading.Thread(target=hold, daemon=True).start()
    while (status := family.poll()) is None:
        if let_go.is_set():
            family.kill()
        elif asked.is_set():
            asked.clear()
            family.terminate()
        time.sleep(_POLL_SECS)
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    os._exit(main(float(sys.argv[1]), sys.argv[2:]))  # the thread is blocked in a read
