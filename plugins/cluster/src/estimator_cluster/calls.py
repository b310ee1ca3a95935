"""The calls that several processes make together: all arrive at the same call, and all end when one fails."""

from __future__ import annotations

import contextlib
import math
import re
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence

import jax

from estimator_core.agreement import SaidByEach, gather
from estimator_core.coordinator import Coordinator, Series
from estimator_core.errors import ArgumentError, EstimatorError, PreemptedError, ProcessLostError, SupersededError

#: The number of batches that this process has drawn together with the others, in one item.
_DRAWN = [0]
#: The seconds that an error of the device network waits for the report of which process was lost.
_NEWS_SECS = 30.0


def count_drawn() -> None:
    """Counts one more batch that all processes draw together."""
    _DRAWN[0] += 1


@contextlib.contextmanager
def together(
    processes: Coordinator,
    call: str,
    *,
    hooks: Sequence[object],
    versions: Callable[[], Sequence[Mapping[str, str]]],
    **arguments: object,
) -> Generator[None]:
    """Waits until all processes have arrived at the same call. Inside the block, all end when one fails.

    Args:
        processes: the processes that compute together.
        call: the name of the call.
        hooks: see `announce`.
        versions: see `announce`.
        arguments: see `announce`.

    Raises:
        ArgumentError: the processes make different calls.
        ProcessLostError: a process is lost.
    """
    with ending_together(processes):
        end = announce(processes, call, hooks=hooks, versions=versions, **arguments)
        try:
            yield
        except GeneratorExit:  # no error: the caller takes no more predictions
            end()
            raise


def announce(
    processes: Coordinator,
    call: str,
    *,
    hooks: Sequence[object],
    versions: Callable[[], Sequence[Mapping[str, str]]],
    **arguments: object,
) -> Callable[[], None]:
    """Waits until all processes have arrived at the same call.

    Args:
        processes: the processes that compute together.
        call: the name of the call.
        hooks: the hooks of the call, without those that plugins add.
        versions: a function that returns the versions of the packages in use. All processes must have the same
            versions, also of jax.
        arguments: the arguments that decide how long the call takes and what it does: numbers, text, or lists of them.

    Returns:
        The function to call when this process breaks the call off, so that the others do not wait for it.

    Raises:
        ArgumentError: the calls differ, or some processes took more predictions before; raised in all processes.
        ProcessLostError: a process is lost.
    """
    kinds = [f"{type(hook).__module__}.{type(hook).__qualname__}" for hook in hooks]
    packages = [f"jax {jax.__version__}", *(f"{one['distribution']} {one['version']}" for one in versions())]
    own = {"call": call, **arguments, "hooks": kinds, "versions": packages}
    end = processes.follow(lambda: _DRAWN[0]) if isinstance(processes, Series) else _nothing
    told, drawn = zip(*gather(processes, "call", [own, _DRAWN[0]]), strict=True)
    if len(set(drawn)) > 1:
        first = drawn.index(min(drawn))
        raise ArgumentError(
            f"Process {first} of {processes.count} stopped taking predictions before others did: before this {call}, "
            f"the processes have drawn {', '.join(map(str, drawn))} batches. All must stop at the same prediction."
        )
    for index, other in enumerate(told):
        if other != told[0]:
            raise ArgumentError(
                f"Processes 0 and {index} of {processes.count} differ: {_in_words(0, told[0], other)}; "
                f"{_in_words(index, other, told[0])}. All processes must run the same program with the same arguments. "
                "Put work for process 0 alone into a hook or an exporter."
            )
    return end


def _nothing() -> None:
    pass


def _in_words(index: int, one: Mapping[str, object], other: Mapping[str, object]) -> str:
    differs = [f"{name}={value!r}" for name, value in one.items() if name != "call" and other.get(name) != value]
    return f"process {index} calls {one['call']}({', '.join(differs) or '...'})"


@contextlib.contextmanager
def ending_together(processes: Coordinator) -> Generator[None]:
    """Ends all processes when one fails, and names the failed process in each.

    Raises:
        ProcessLostError: a process is lost. It replaces any error of the device network that another process caused.
    """
    try:
        yield
    except ProcessLostError:
        processes.lost()  # a process that knows of the loss may end regularly
        raise
    except (PreemptedError, GeneratorExit):
        raise
    except (SupersededError, SaidByEach) as error:  # the others learn who has failed
        processes.fail(error)
        raise
    except BaseException as error:
        told = f"process {processes.index} of {processes.count} has reported this error to the others"
        if told not in getattr(error, "__notes__", ()):  # else the call inside this one has: others end because of it
            lost = _news_of(error, processes)
            if lost is not None:
                raise lost from error
            processes.fail(error)
            with contextlib.suppress(Exception):  # an error that takes no notes stays as it is
                error.add_note(told)
        raise


def _meet(processes: Coordinator) -> None:
    """Waits for the other processes after a connection was closed, until one is known to be lost, but not for long.

    Whoever closed it is lost, has ended, or arrives here too. A process that computes undisturbed does not arrive, and
    is not lost.
    """

    def wait() -> None:
        with contextlib.suppress(ProcessLostError):
            processes.barrier("closed connection", math.inf)

    waiting = threading.Thread(target=wait, name="closed-connection", daemon=True)
    waiting.start()
    waiting.join(_NEWS_SECS)


def _news_of(error: BaseException, processes: Coordinator) -> ProcessLostError | None:
    """Returns the error of the lost process that caused an error, or of a broken connection of this process.

    The network fails before the report arrives, so the call waits for it.
    """
    # jax raises its JaxRuntimeError, or a ValueError when a program starts. Both begin with the code of a status.
    if re.match(r"[A-Z_]+: ", str(error)) and not isinstance(error, EstimatorError):
        if re.search("(?s)Gloo.*onnection (closed|reset)", str(error)):  # not the connection of a store, for example
            _meet(processes)
            if processes.lost() is None:
                broken = f"The connection of this process to another one broke, although all are alive: {error}"
                failed = ProcessLostError(broken, processes.index)
                processes.fail(failed)
                return failed
        else:
            deadline = time.monotonic() + _NEWS_SECS
            while processes.lost() is None and time.monotonic() < deadline:
                time.sleep(0.05)
    lost = processes.lost()
    return None if lost is None else ProcessLostError(lost.describe(processes.count), lost.index)
