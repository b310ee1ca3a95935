"""What processes do together, on any `Coordinator`: values as JSON, and an end for all when one fails."""

from __future__ import annotations

import contextlib
import json
import math
import re
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

from estimator_core.coordinator import Coordinator, Lost
from estimator_core.errors import ArgumentError, EstimatorError, PreemptedError, ProcessLostError, SupersededError

#: How long an error of the device network waits for the news of which process was lost.
_NEWS_SECS = 30.0


class SaidByEach(Exception):  # noqa: N818 - what errors inherit
    """Beside its own base, an error inherits this if each process that knows of it says so itself, and no other's."""


def gather(processes: Coordinator, topic: str, value: object = None) -> list[Any]:
    """The JSON values of all processes, in order of their index. The call waits as long as all are alive.

    Raises:
        ProcessLostError: one of them is gone.

    Example:
        >>> from estimator_core.coordinator import ALONE
        >>> gather(ALONE, "anything", {"rows": 3})
        [{'rows': 3}]
    """
    if processes.count == 1:
        return [value]
    return [json.loads(text) for text in processes.agree(topic, json.dumps(value), math.inf)]


def chief_says(processes: Coordinator, topic: str, value: object = None) -> Any:
    """The JSON value of process 0. The values of the others do not matter.

    Raises:
        ProcessLostError: a process is gone.
    """
    if processes.count == 1:
        return value
    return json.loads(processes.tell(topic, json.dumps(value) if processes.index == 0 else None, math.inf))


def announce(
    processes: Coordinator,
    call: str,
    *,
    hooks: Sequence[object],
    versions: Callable[[], Sequence[Mapping[str, str]]],
    **arguments: object,
) -> None:
    """Returns when all processes have arrived at the same call.

    Args:
        processes: those that compute together.
        call: what is called.
        hooks: the hooks of the call, without those that plugins add.
        versions: the packages in use, whose versions must be the same, as jax's must be.
        arguments: those that decide how long the call takes and what it does: numbers, text, or lists of them.

    Raises:
        ArgumentError: the calls differ; raised in all processes.
        ProcessLostError: a process is gone.
    """
    if processes.count == 1:
        return
    import jax

    kinds = [f"{type(hook).__module__}.{type(hook).__qualname__}" for hook in hooks]
    packages = [f"jax {jax.__version__}", *(f"{one['distribution']} {one['version']}" for one in versions())]
    own = {"call": call, **arguments, "hooks": kinds, "versions": packages}
    told = gather(processes, "call", own)
    for index, other in enumerate(told):
        if other != told[0]:
            raise ArgumentError(
                f"Processes 0 and {index} of {processes.count} do not do the same: {_in_words(0, told[0], other)}; "
                f"{_in_words(index, other, told[0])}. All processes run one program with the same arguments: what only "
                "the first shall do belongs into a hook or an exporter."
            )


def _in_words(index: int, one: Mapping[str, object], other: Mapping[str, object]) -> str:
    differs = [f"{name}={value!r}" for name, value in one.items() if name != "call" and other.get(name) != value]
    return f"process {index} calls {one['call']}({', '.join(differs) or '...'})"


@contextlib.contextmanager
def ending_together(processes: Coordinator) -> Generator[None]:
    """Ends all processes when one fails, and names the failed process in each.

    Raises:
        ProcessLostError: replaces any error of the device network that another process caused.
    """
    if processes.count == 1:
        yield
        return
    try:
        yield
    except ProcessLostError:
        processes.lost()  # a process that knows of the loss may end in order
        raise
    except (PreemptedError, GeneratorExit):
        raise
    except (SupersededError, SaidByEach) as error:  # the others learn who has failed
        processes.fail(error)
        raise
    except BaseException as error:
        lost = _news_of(error, processes)
        if lost is not None:
            raise ProcessLostError(lost.describe(processes.count), lost.index) from error
        processes.fail(error)
        raise


def _news_of(error: BaseException, processes: Coordinator) -> Lost | None:
    """The lost process that caused an error. The network fails before the news arrives, so the call waits for it."""
    # jax raises its JaxRuntimeError, or a ValueError when a program starts: both begin with the code of a status.
    if re.match(r"[A-Z_]+: ", str(error)) and not isinstance(error, EstimatorError):
        deadline = time.monotonic() + _NEWS_SECS
        while processes.lost() is None and time.monotonic() < deadline:
            time.sleep(0.05)
    return processes.lost()
