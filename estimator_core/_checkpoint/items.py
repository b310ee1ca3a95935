"""The contents of a checkpoint, including the state of hooks, and a checkpoint that is being written."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from estimator_core.errors import CheckpointError, HookError

#: The items that a reader may request. Clock, timers and manifest are always included.
ITEM_NAMES = ("variables", "model_state", "opt_state", "input", "hooks")


@dataclass(frozen=True, kw_only=True)
class CheckpointItems:
    """Everything in one checkpoint, by item.

    Arrays to save may be on devices. Arrays that were read are numpy arrays, except typed random keys, which only jax
    can represent. Items that were not requested are empty.

    Args:
        clock: uint32[4]. The first word is the global step. The second is the first step whose loss was not finite, or
            0.
        variables: the trainable variables, by path.
        model_state: the other variables by path.
        opt_state: the leaves of the optimizer state, by path.
        input: the position of the input as JSON. None without a position.
        hooks: the result of `state()` of each hook, by its stable name: JSON values and numpy arrays.
        timers: the bases of step and time cadences as JSON, so that a resumed call keeps the cadence of the interrupted
            one.
        manifest: information for human readers as JSON: plugins with versions, configuration, and other facts about the
            checkpoint.

    Example:
        >>> import numpy as np
        >>> items = CheckpointItems(clock=np.zeros(4, np.uint32), variables={"kernel": np.ones((2, 3), np.float32)})
        >>> items.model_state
        {}
    """

    clock: Any
    variables: Mapping[str, Any]
    model_state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    opt_state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    input: Any = None
    hooks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    timers: Mapping[str, Any] = field(default_factory=dict[str, Any])
    manifest: Mapping[str, Any] = field(default_factory=dict[str, Any])


_MARK = "__array__"


def split_hook_states(states: Mapping[str, Mapping[str, object]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits hook states into JSON and arrays.

    Args:
        states: the state of each hook, by its name: JSON values, numpy or jax arrays, nested in dicts and lists. Tuples
            become lists.

    Returns:
        The JSON tree with `{"__array__": path}` in place of each array, and the arrays by path.

    Raises:
        HookError: a checkpoint cannot represent a value. The message names the hook and the place in its state.

    Example:
        >>> split_hook_states({"Best": {"loss": 0.5, "seen": np.arange(2)}})
        ({'Best': {'loss': 0.5, 'seen': {'__array__': 'Best/seen'}}}, {'Best/seen': array([0, 1])})
    """
    arrays: dict[str, Any] = {}
    return {hook: _split(state, hook, hook, arrays) for hook, state in states.items()}, arrays


def join_hook_states(tree: Mapping[str, object], arrays: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """Restores the hook states from the results of `split_hook_states`."""
    return {hook: _join(state, arrays) for hook, state in tree.items()}


def _split(value: object, hook: str, place: str, arrays: dict[str, Any]) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float) and not isinstance(value, np.generic):
        return value
    if isinstance(value, Mapping):
        return {_key(key, hook, place): _split(inner, hook, f"{place}/{key}", arrays) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_split(inner, hook, f"{place}/{index}", arrays) for index, inner in enumerate(value)]
    if isinstance(value, np.ndarray | np.generic) or (hasattr(value, "dtype") and hasattr(value, "shape")):
        if place in arrays:
            raise CheckpointError(f"Two arrays in hook states have the path {place!r}. Rename a key that contains '/'.")
        arrays[place] = value
        return {_MARK: place}
    raise HookError(
        f"The state of hook {hook!r} holds a {type(value).__name__} at {place!r}. "
        "`Hook.state` may return None, booleans, numbers, strings, numpy arrays, and lists and dicts of them."
    )


def _key(key: object, hook: str, place: str) -> str:
    if not isinstance(key, str):
        raise HookError(
            f"The state of hook {hook!r} has the key {key!r} at {place!r}; keys must be strings, as in JSON."
        )
    if key == _MARK:
        raise HookError(
            f"The state of hook {hook!r} has the key {_MARK!r} at {place!r}, which stands for an array in checkpoints; "
            "choose another."
        )
    return key


def _join(value: object, arrays: Mapping[str, object]) -> Any:
    if isinstance(value, dict):
        return arrays[value[_MARK]] if _MARK in value else {key: _join(inner, arrays) for key, inner in value.items()}
    return [_join(inner, arrays) for inner in value] if isinstance(value, list) else value


class PendingCheckpoint:
    """A commit in progress in its own thread. The process waits for the thread before it exits.

    Args:
        step: the global step.
        commit: a function that commits the checkpoint and returns its path.
    """

    def __init__(self, step: int, commit: Callable[[], str]) -> None:
        self._step = step
        self._path: str | None = None
        self._error: BaseException | None = None
        self._raised = False
        self._thread = threading.Thread(target=self._run, args=(commit,), name=f"checkpoint-{step}", daemon=False)
        self._thread.start()

    @property
    def step(self) -> int:
        """The global step that is saved."""
        return self._step

    @property
    def path(self) -> str:
        """The committed directory. Reading it waits for the commit and raises its error."""
        self.wait()
        assert self._path is not None
        return self._path

    @property
    def error(self) -> BaseException | None:
        """The error of the commit after `done()`; None without an error."""
        return self._error

    def done(self) -> bool:
        """Returns whether the commit has ended, with or without an error."""
        return not self._thread.is_alive()

    def join(self) -> None:
        """Waits until the commit has ended, with or without an error."""
        self._thread.join()

    def wait(self) -> None:
        """Waits for the commit and raises its error."""
        self.join()
        if self._error is not None:
            self._raised = True
            raise self._error

    def settle(self) -> None:
        """Waits for the commit. Raises its error, unless it has been raised before."""
        self._thread.join()
        if self._error is not None and not self._raised:
            self.wait()

    def _run(self, commit: Callable[[], str]) -> None:
        try:
            self._path = commit()
        except BaseException as error:  # raised by `wait`
            self._error = error
