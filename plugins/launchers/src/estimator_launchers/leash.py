"""Runs a command for as long as the process that started it lives: `python -m estimator_launchers.leash COMMAND`.

Its standard input is a pipe of that process; the pipe closes however the process ends, by SIGKILL too. Then the command
is killed: a new attempt may begin elsewhere, and two must not write into one directory. SIGTERM is passed on.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading


def main(command: list[str]) -> int:
    """The exit status of the command; 128 and the signal where one has ended it."""
    try:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.stderr.flush()
        return 127
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())

    def hold() -> None:
        while os.read(0, 1):
            pass
        child.kill()

    threading.Thread(target=hold, daemon=True).start()
    status = child.wait()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # the thread sits in a read
