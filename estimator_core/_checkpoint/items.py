"""What a checkpoint holds, and how the memory of hooks is split into a tree of JSON values and arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from estimator_core.errors import CheckpointError, HookError

#: The items that a reader may request. Clock, timers and manifest come with each of them.
ITEM_NAMES = ("variables", "model_state", "opt_state", "input", "hooks")


@dataclass(frozen=True, kw_only=True)
class CheckpointItems:
    """Everything one checkpoint carries, by item.

    What is saved may live on devices. What is read is numpy, except typed random keys, which only jax can hold. Items
    that were not requested are empty.

    Args:
        clock: uint32[4]; the first word is the global step, the second the first step whose loss was not finite, or 0.
        variables: trainable variables by path.
        model_state: the other variables by path.
        opt_state: leaves of the optimizer's state by path.
        input: JSON position of the input, None without one.
        hooks: what each hook's `state()` returned, by the hook's stable name: JSON values and numpy arrays.
        timers: JSON: the bases of step and time cadences, so that a resumed call keeps the interrupted one's rhythm.
        manifest: JSON for the reader's eyes: plugins with versions, configuration, whatever explains the checkpoint.

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
        states: hook name -> its state: JSON values, numpy or jax arrays, nested in dicts and lists. Tuples come back
            as lists.

    Returns:
        The JSON tree with `{"__array__": path}` where an array was, and the arrays by path.

    Raises:
        HookError: a checkpoint cannot hold a value. The message names the hook and the place in its state.

    Example:
        >>> split_hook_states({"Best": {"loss": 0.5, "seen": np.arange(2)}})
        ({'Best': {'loss': 0.5, 'seen': {'__array__': 'Best/seen'}}}, {'Best/seen': array([0, 1])})
    """
    arrays: dict[str, Any] = {}
    return {hook: _split(state, hook, hook, arrays) for hook, state in states.items()}, arrays


def join_hook_states(tree: Mapping[str, object], arrays: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    """The inverse of `split_hook_states`."""
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
            f"The state of hook {hook!r} has the key {key!r} at {place!r}; keys must be strings, as JSON's."
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
