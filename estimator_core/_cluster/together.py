"""What processes do together, on any `Coordinator`: values as JSON, and an end for all when one fails."""

from __future__ import annotations

import contextlib
import json
import math
import re
import time
from collections.abc import Generator
from typing import Any

from estimator_core.coordinator import Coordinator, Lost
from estimator_core.errors import EstimatorError, PreemptedError, ProcessLostError

#: How long an error of the device network waits for the news of whom it was about.
_NEWS_SECS = 30.0


def gather(processes: Coordinator, topic: str, value: Any = None) -> list[Any]:
    """What every process gave, in their order: JSON values. It waits as long as all are alive.

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


def chief_says(processes: Coordinator, topic: str, value: Any = None) -> Any:
    """What process 0 gave, a JSON value; the others' values do not matter.

    Raises:
        ProcessLostError: a process is gone.
    """
    if processes.count == 1:
        return value
    return json.loads(processes.tell(topic, json.dumps(value) if processes.index == 0 else None, math.inf))


@contextlib.contextmanager
def ending_together(processes: Coordinator) -> Generator[None]:
    """Ends all processes when one fails, and says in each which one it was.

    Raises:
        ProcessLostError: in place of whatever error of the device network another process caused.
    """
    if processes.count == 1:
        yield
        return
    try:
        yield
    except ProcessLostError:
        processes.lost()  # who has been told of it may end in order
        raise
    except (PreemptedError, GeneratorExit):
        raise
    except BaseException as error:
        lost = _news_of(error, processes)
        if lost is not None:
            raise ProcessLostError(lost.describe(processes.count), lost.index) from error
        processes.fail(error)
        raise


def _news_of(error: BaseException, processes: Coordinator) -> Lost | None:
    """The lost process behind an error. An error of the network comes before the news of the loss: it waits."""
    # jax raises its JaxRuntimeError, or a ValueError where a program is started: both begin with the code of a status.
    if re.match(r"[A-Z_]+: ", str(error)) and not isinstance(error, EstimatorError):
        deadline = time.monotonic() + _NEWS_SECS
        while processes.lost() is None and time.monotonic() < deadline:
            time.sleep(0.05)
    return processes.lost()
