"""Imports a plugin module in a fresh process and reports the effects on the process."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import dataclass
from typing import Any

from estimator_testing._core import HEAVY_PACKAGES, import_target


@dataclass(frozen=True, kw_only=True)
class ProbeReport:
    """The effects of the import of a plugin module, and of a call for its declarations, on a process.

    Attributes:
        heavy: the heavy packages that it imported.
        output: the text that it printed.
        changes: the changes of the process, in words.
        declared: the declarations, in their own order.
        seconds: the duration in seconds.
    """

    heavy: list[str]
    output: str
    changes: list[str]
    declared: list[str]
    seconds: float


def probe(module: str, *, hash_seed: int = 0) -> ProbeReport:
    """Probes a module in a fresh Python process.

    Args:
        module: the module that the entry point names.
        hash_seed: the seed of string hashes. Results that depend on the order of a set differ between two seeds.

    Raises:
        RuntimeError: the process failed. The message has its output.
    """
    environment = {
        **os.environ,
        "PYTHONHASHSEED": str(hash_seed),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    command = [sys.executable, "-m", __name__, module]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"a fresh process could not import {module}:\n{done.stderr or done.stdout}")
    return ProbeReport(**json.loads(done.stdout))


def observe_import(module: str) -> ProbeReport:
    """Imports a module in this process, which has imported no part of it yet, and returns the effects."""
    before = _process_state()
    loaded = HEAVY_PACKAGES & sys.modules.keys()
    buffer = io.StringIO()
    start = time.perf_counter()
    with contextlib.redirect_stdout(buffer), contextlib.redirect_stderr(buffer):
        plugin = import_target(module)
        declared = [
            repr(record)
            for name in ("estimator_components", "estimator_commands", "estimator_options")
            for record in (getattr(plugin, name)() if hasattr(plugin, name) else ())
        ]
    seconds = time.perf_counter() - start
    after = _process_state()
    return ProbeReport(
        heavy=sorted((HEAVY_PACKAGES & sys.modules.keys()) - loaded),
        output=buffer.getvalue(),
        changes=[
            f"{what} changed from {before[what]} to {after[what]}" for what in before if before[what] != after[what]
        ],
        declared=declared,
        seconds=seconds,
    )


def _process_state() -> dict[str, Any]:
    """Returns the state that the import of a module must not change."""
    return {
        "the environment": dict(os.environ),
        "the working directory": os.getcwd(),
        "sys.path": list(sys.path),
        "the root logger": (logging.getLogger().level, [repr(one) for one in logging.getLogger().handlers]),
        "the warning filters": len(warnings.filters),
        "the running threads": sorted(thread.name for thread in threading.enumerate()),
        "the signal handlers": [str(signal.getsignal(one)) for one in (signal.SIGTERM, signal.SIGINT)],
        "the recursion limit": sys.getrecursionlimit(),
    }


if __name__ == "__main__":
    json.dump(vars(observe_import(sys.argv[1])), sys.stdout)
