"""What a checkpoint holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: The items a reader may ask for; clock, timers and manifest come with each of them.
ITEM_NAMES = ("variables", "model_state", "opt_state", "input", "hooks")


@dataclass(frozen=True, kw_only=True)
class CheckpointItems:
    """Everything one checkpoint carries, by item.

    What is saved may live on devices; what is read is numpy, except typed random keys, which only jax can hold. Items
    that were not asked for are empty.

    Args:
        clock: uint32[4]; the first word is the global step, the second the first step whose loss was not finite, 0
            where none was.
        variables: trainable variables by path.
        model_state: the other variables by path.
        opt_state: leaves of the optimizer's state by path.
        input: JSON position of the input, None where there is none.
        hooks: what each hook's `state()` gave, by the hook's stable name: JSON values and numpy arrays.
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
