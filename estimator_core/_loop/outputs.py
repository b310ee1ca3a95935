"""The outputs of a dispatch, read lazily."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import numpy as np

from estimator_core.errors import HookError

#: Up to this size, copying the values of all steps of a dispatch is cheaper than slicing the last one on the device.
_SMALL_BYTES = 4096


class LazyOutputs(Mapping[str, Any]):
    """What one dispatch computed. A value is copied from the device when it is first requested.

    Args:
        values: outputs by name; with a leading axis of steps if `stacked`.
        steps: the global steps the dispatch completed.
        stacked: whether values have a leading axis of steps.
        extras: further values by name, computed on demand.
        waiting: entered while a value is awaited, so that the time can be accounted for.

    Example:
        >>> out = LazyOutputs({"loss": np.array([3.0, 2.0])}, steps=range(5, 7), stacked=True)
        >>> float(out["loss"]), out.all("loss").tolist()
        (2.0, [3.0, 2.0])
    """

    def __init__(
        self,
        values: Mapping[str, object],
        *,
        steps: range,
        stacked: bool,
        extras: Mapping[str, Callable[[], Any]] | None = None,
        waiting: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        self._values = values
        self._steps = steps
        self._stacked = stacked
        self._extras = extras or {}
        self._waiting = waiting
        self._read: dict[str, Any] = {}

    @property
    def steps(self) -> range:
        """The global steps this dispatch completed."""
        return self._steps

    def __getitem__(self, name: str) -> Any:
        if name not in self._read:
            with self._waiting():
                self._read[name] = (
                    self._extras[name]() if name in self._extras else _to_host(self._value(name), last=self._stacked)
                )
        return self._read[name]

    def all(self, name: str) -> np.ndarray:
        """The values of every step of the dispatch, with a leading axis of steps."""
        value = self._value(name)
        if not self._stacked:
            return np.asarray(_to_host(value, last=False))[None]
        if hasattr(value, "compute"):
            fetched = jax.device_get(value)
            return np.stack(
                [
                    np.asarray(jax.tree.map(lambda leaf, index=index: leaf[index], fetched).compute())
                    for index in range(len(self._steps))
                ]
            )
        return np.asarray(value)

    def only(self, names: set[str]) -> LazyOutputs:
        """The outputs of some names, so that the others can be freed."""
        return LazyOutputs(
            {name: value for name, value in self._values.items() if name in names},
            steps=self._steps,
            stacked=self._stacked,
        )

    def device_value(self, name: str) -> Any:
        """The value of the last step as it is, without waiting for the device."""
        value = self._value(name)
        return jax.tree.map(lambda leaf: leaf[-1], value) if self._stacked else value

    def __contains__(self, name: object) -> bool:
        return name in self._values or name in self._extras

    def __iter__(self) -> Iterator[str]:
        return iter([*self._values, *self._extras])

    def __len__(self) -> int:
        return len(self._values) + len(self._extras)

    def _value(self, name: str) -> Any:
        if name not in self._values:
            raise HookError(unknown_name(name, self._values))
        return self._values[name]


def check_fetches(names: Iterable[str], available: Iterable[str]) -> None:
    """Refuses outputs that were declared with `run.fetch` and that no step produces.

    Raises:
        HookError: there is such an output. The message names the first, with near matches.
    """
    known = set(available)
    for name in sorted(names):
        if name not in known:
            raise HookError(unknown_name(name, known))


def unknown_name(name: str, available: Any) -> str:
    """The message for an output that does not exist."""
    near = difflib.get_close_matches(name, [str(item) for item in available], n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return (
        f"The step has no output {name!r}.{hint} Its outputs: {sorted(map(str, available))}. Name a value in model_fn "
        "with ec.summary.scalar or ec.tensor."
    )


def _to_host(value: object, *, last: bool) -> Any:
    if isinstance(value, jax.Array) and (not last or value.nbytes <= _SMALL_BYTES):
        host = np.asarray(value)  # without the detours below, which cost more than a scalar itself
        return np.asarray(host[-1]) if last else host
    fetched = jax.device_get(jax.tree.map(lambda leaf: leaf[-1], value) if last else value)
    return fetched.compute() if hasattr(fetched, "compute") else np.asarray(fetched)
