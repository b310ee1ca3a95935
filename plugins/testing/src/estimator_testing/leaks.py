"""Checks that a component leaves no thread, no open file and no change of global state in its process."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np

_DESCRIPTORS = next((Path(name) for name in ("/proc/self/fd", "/dev/fd") if os.path.isdir(name)), None)
#: The setting before any component was used, because a component may have changed it permanently.
_ERRORS = np.geterr()
#: The seconds that a thread may take to end after it was told to.
_THREAD_SECS = 2.0


@contextlib.contextmanager
def leaving_nothing(who: str) -> Generator[None]:
    """Fails if the block leaves a thread or an open file behind, or changes the state of the process.

    The random generators of `random` and `numpy.random` are part of that state, because drawing from them changes the
    numbers of others.

    Args:
        who: the name of the component, at the beginning of the message.

    Raises:
        AssertionError: something is left or changed. The message names it.

    Example:
        >>> with leaving_nothing("the reader"):
        ...     with open(os.devnull) as file:
        ...         pass
    """
    np.random.random()  # so that a component that sets the same seed is noticed
    random.random()
    errors = np.seterr(**_ERRORS)
    threads, files, state = set(threading.enumerate()), _open_files(), process_state()
    yield
    for thread in set(threading.enumerate()) - threads:
        thread.join(timeout=_THREAD_SECS)
        assert not thread.is_alive(), f"{who} leaves thread {thread.name} running"
    if _new(_open_files(), files):
        gc.collect()  # closes unreachable objects
    left = _new(_open_files(), files)
    assert not left, f"{who} leaves files open: {', '.join(left)}"
    after = process_state()
    np.seterr(**errors)
    changed = [what for what in state if state[what] != after[what]]
    assert not changed, f"{who} changes {', '.join(changed)}"


@contextlib.contextmanager
def loading() -> Generator[None]:
    """Surrounds a first use, which may load libraries.

    Its changes of the process are undone, so that a second use that changes it again is noticed.

    Example:
        >>> with loading():
        ...     os.environ["ACME"] = "1"
        >>> "ACME" in os.environ
        False
    """
    environment, folder, path = dict(os.environ), os.getcwd(), list(sys.path)
    limit, level, hook = sys.getrecursionlimit(), logging.getLogger().level, sys.excepthook
    errors, printing = np.geterr(), np.get_printoptions()
    try:
        yield
    finally:
        for name in set(os.environ) - set(environment):
            del os.environ[name]
        os.environ.update(environment)
        os.chdir(folder)
        sys.path[:] = path
        sys.setrecursionlimit(limit)
        logging.getLogger().setLevel(level)
        sys.excepthook = hook
        np.seterr(**errors)
        np.set_printoptions(**printing)


def process_state() -> dict[str, Any]:
    """Returns the state of the process that no component may change, by its name."""
    return {
        "the environment": dict(os.environ),
        "the working directory": os.getcwd(),
        "sys.path": list(sys.path),
        "the recursion limit": sys.getrecursionlimit(),
        "the warning filters": list(warnings.filters),
        "the level of the root logger": logging.getLogger().level,
        "the handlers of the root logger": list(logging.getLogger().handlers),
        "the signal handlers": [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)],
        "sys.excepthook": sys.excepthook,
        "numpy's treatment of errors": np.geterr(),
        "numpy's print options": {name: repr(value) for name, value in np.get_printoptions().items()},
        "the generator of the module random": random.getstate(),
        "the generator of numpy.random": repr(np.random.get_state(legacy=False)["state"]),
    }


def _open_files() -> dict[str, str]:
    """Returns the target of each descriptor of this process, if the system lists them."""
    found: dict[str, str] = {}
    for entry in [] if _DESCRIPTORS is None else os.listdir(_DESCRIPTORS):
        with contextlib.suppress(OSError):  # the descriptor of the list itself
            found[entry] = os.readlink(f"{_DESCRIPTORS}/{entry}")
    return found


def _new(now: dict[str, str], before: dict[str, str]) -> list[str]:
    return [path for number, path in now.items() if before.get(number) != path]
