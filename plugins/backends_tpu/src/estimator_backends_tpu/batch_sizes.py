"""Batch sizes: global in the constructor, and the part of a process in its input_fn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from estimator_core.errors import ArgumentError
from estimator_core.inputs import InputContext, call_input_fn

_NAMES = {"train": "train_batch_size", "eval": "eval_batch_size", "infer": "predict_batch_size"}
_DATA_AXIS = "data"


@dataclass(frozen=True, kw_only=True)
class BatchSizes:
    """The number of examples of a batch by mode, for all processes together. None for a mode without a size."""

    train: int | None
    eval: int | None
    infer: int | None

    def __post_init__(self) -> None:
        for mode, name in _NAMES.items():
            size = getattr(self, mode)
            if size is not None and (isinstance(size, bool) or not hasattr(size, "__index__") or size < 1):
                raise ArgumentError(f"{name} must be an int >= 1 or None, given: {size!r}.")

    def added(self, params: Mapping[str, Any], mode: str, parts: int = 1) -> dict[str, Any]:
        """Returns `params` with `batch_size`, the size of one of `parts` equal parts, if this mode has a size.

        Raises:
            ArgumentError: the parts are not equal.
        """
        size = getattr(self, mode)
        if size is None:
            return dict(params)
        if size % parts:
            raise ArgumentError(f"{_NAMES[mode]} {size} must be divisible by the number of processes, {parts}.")
        return {**params, "batch_size": size // parts}

    def check(self, mode: str, features: Any) -> None:
        """Refuses a global batch that does not divide by the replicas. It is called while model_fn is traced.

        Raises:
            ArgumentError: the batch does not divide.
        """
        import jax

        replicas = jax.sharding.get_abstract_mesh().shape.get(_DATA_AXIS, 1)
        size, leaves = getattr(self, mode), jax.tree_util.tree_leaves(features)
        if size is not None and leaves and leaves[0].shape[:1] == (size,) and size % replicas:
            raise ArgumentError(f"{_NAMES[mode]} {size} must be divisible by the number of replicas, {replicas}.")


@dataclass(frozen=True, kw_only=True)
class SizedInput:
    """An input_fn whose params contain the batch size of this process."""

    input_fn: Callable[..., Any]
    sizes: BatchSizes

    def __call__(
        self, *, mode: Any = None, params: Any = None, config: Any = None, input_context: InputContext | None = None
    ) -> Any:
        """Calls the inner input_fn with the arguments that it names."""
        context = input_context or InputContext()
        sized = self.sizes.added(params, mode, context.num_input_pipelines)
        return call_input_fn(self.input_fn, {"mode": mode, "params": sized, "config": config, "input_context": context})
