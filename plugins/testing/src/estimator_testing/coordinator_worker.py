"""One process of `CoordinatorSuite`: `python -m estimator_testing.coordinator_worker SETTINGS_JSON`.

It connects, runs the `scene`, and prints its observations as one line of JSON.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

from estimator_core import Processes
from estimator_core.coordinator import Coordinator
from estimator_core.errors import ProcessLostError

#: The time limit in seconds for waits that end earlier in every scene.
_LONG = 120.0
Scene = Callable[[Coordinator], Mapping[str, Any]]


def agreements(here: Coordinator) -> Mapping[str, Any]:
    """Uses a repeated topic, two topics in turn, the value of process 0, and a barrier. Each process is slow once."""
    values: list[list[str]] = []
    for turn in range(6):
        if turn % here.count == here.index:
            time.sleep(0.05)
        values.append(here.agree("again", f"{here.index}:{turn}", _LONG))
        here.barrier(f"odd/{turn % 2}", _LONG)
    long = here.agree("long", str(here.index) * 200_000, _LONG)
    return {
        "values": values,
        "told": [here.tell("told", f"{here.index}:{turn}" if here.index == 0 else None, _LONG) for turn in range(2)],
        "long": [len(value) for value in long],
        "lost": here.lost() is not None,
    }


def late(here: Coordinator) -> Mapping[str, Any]:
    """Makes the last process arrive too late."""
    if here.index == here.count - 1:
        time.sleep(4.0)
        return {}
    return _loss(lambda: here.barrier("late", 1.0))


def failing(here: Coordinator) -> Mapping[str, Any]:
    """Makes the last process fail while the others wait for it."""
    here.barrier("begin", _LONG)
    if here.index == here.count - 1:
        here.fail(RuntimeError("the disk is full\nand more"))
        sys.exit(1)
    return {**_loss(lambda: here.agree("never", "", _LONG)), **_known(here)}


def killed(here: Coordinator) -> Mapping[str, Any]:
    """Kills the last process while the others wait for it."""
    return _struck(here, signal.SIGKILL)


def frozen(here: Coordinator) -> Mapping[str, Any]:
    """Freezes the last process while the others wait for it."""
    return _struck(here, signal.SIGSTOP)


def leaving(here: Coordinator) -> Mapping[str, Any]:
    """Ends the last process normally. Only a process that waits for it treats that as a loss."""
    here.barrier("begin", _LONG)
    if here.index == here.count - 1:
        return {}
    time.sleep(2.5)
    before = here.lost() is not None
    return {"before": before, **_loss(lambda: here.barrier("never", _LONG))}


def leaving_before_a_kill(here: Coordinator) -> Mapping[str, Any]:
    """Ends process 1 normally, and kills process 2 a second later. Only that is a loss."""
    here.barrier("begin", _LONG)
    if here.index == 1:
        return {}
    if here.index:
        time.sleep(1.0)
        os.kill(os.getpid(), signal.SIGKILL)
    began = time.monotonic()
    while (lost := here.lost()) is None and time.monotonic() - began < _LONG:
        time.sleep(0.05)
    return {"index": None if lost is None else lost.index, "text": "" if lost is None else lost.describe(here.count)}


def first_ends_first(here: Coordinator) -> Mapping[str, Any]:
    """Ends process 0 while the others still have work."""
    here.barrier("begin", _LONG)
    if here.index:
        time.sleep(2.5)
    return {"lost": here.lost() is not None}


def _struck(here: Coordinator, number: int) -> Mapping[str, Any]:
    here.barrier("begin", _LONG)
    if here.index == here.count - 1:
        os.kill(os.getpid(), number)
    return {**_loss(lambda: here.agree("never", "", math.inf)), **_known(here)}


def _loss(wait: Callable[[], object]) -> Mapping[str, Any]:
    began = time.monotonic()
    try:
        wait()
    except ProcessLostError as error:
        return {"index": error.index, "text": str(error), "seconds": time.monotonic() - began}
    return {"index": None, "text": "nothing was raised", "seconds": time.monotonic() - began}


def _known(here: Coordinator) -> Mapping[str, Any]:
    lost = here.lost()
    return {} if lost is None else {"known": lost.index, "who": lost.who, "reason": lost.reason}


SCENES: Mapping[str, Scene] = {
    scene.__name__: scene
    for scene in (agreements, late, failing, killed, frozen, leaving, leaving_before_a_kill, first_ends_first)
}


def main(settings: Mapping[str, Any]) -> None:
    """Connects and runs a scene. A process that learned of a loss ends with an error, like a run."""
    module, _, name = settings["connects"].partition(":")
    connect = getattr(importlib.import_module(module), name)
    group = Processes(settings["address"], settings["count"], settings["index"], "the suite")
    here: Coordinator = connect(group, settings["options"])
    seen = SCENES[settings["scene"]](here)
    sys.stdout.write(json.dumps({"process": [here.index, here.count], **seen}) + "\n")
    sys.stdout.flush()
    if seen.get("index") is not None:
        sys.exit(75)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
