"""The contract of inputs: batches, positions, the shard of a process, and the options that an input declares."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from estimator_core.errors import ArgumentError, InputError, check_count

_BYTES_KEY = "base64"


class InputPosition(NamedTuple):
    """The position of an input: how far it has been read.

    It is a tuple rather than a dataclass because every batch creates one.

    Attributes:
        fingerprint: identifies the input: `"kind; name=value; ..."`. A position is restored only if the fingerprints
            are equal.
        examples: the number of examples read since the input began.
        batches: the number of batches read since the input began.
        exhausted: whether the input has ended. If so, the next call starts it again.
        source_state: the result of `get_state` of the iterator: JSON or bytes. None for inputs whose position is a
            count.

    Example:
        >>> position = InputPosition("numpy; n=10", examples=8, batches=2)
        >>> InputPosition.from_json(position.to_json()) == position
        True
    """

    fingerprint: str
    examples: int = 0
    batches: int = 0
    exhausted: bool = False
    source_state: Any = None

    def to_json(self) -> dict[str, Any]:
        """Returns the position as JSON values."""
        state = self.source_state
        if isinstance(state, bytes):
            state = {_BYTES_KEY: base64.b64encode(state).decode("ascii")}
        return {**self._asdict(), "source_state": state}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> InputPosition:
        """Reads a position that `to_json` wrote.

        Raises:
            InputError: `value` is not an input position.
        """
        try:
            state = value["source_state"]
            if isinstance(state, Mapping) and set(state) == {_BYTES_KEY}:
                state = base64.b64decode(state[_BYTES_KEY])
            return cls(
                fingerprint=str(value["fingerprint"]),
                examples=int(value["examples"]),
                batches=int(value["batches"]),
                exhausted=bool(value["exhausted"]),
                source_state=state,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"This is not an input position: {value!r} ({error!r}). Read one from a checkpoint's input item."
            ) from error


def fingerprint_of(kind: str, **facts: object) -> str:
    """Returns a readable fingerprint.

    Example:
        >>> fingerprint_of("numpy", n=10, shuffle=True)
        'numpy; n=10; shuffle=True'
    """
    return "; ".join([kind, *(f"{name}={value}" for name, value in facts.items())])


def difference(saved: str, current: str) -> str:
    """Describes the difference between two fingerprints.

    Example:
        >>> difference("numpy; n=10; seed=1", "numpy; n=12; seed=1")
        'n was 10 and is 12'
        >>> difference("numpy; n=10", "grain")
        'it was numpy and is grain'
    """
    old_kind, old = _facts(saved)
    new_kind, new = _facts(current)
    if old_kind != new_kind:
        return f"it was {old_kind} and is {new_kind}"
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return ", ".join(f"{name} was {old.get(name, 'absent')} and is {new.get(name, 'absent')}" for name in names)


def _facts(fingerprint: str) -> tuple[str, dict[str, str]]:
    kind, *facts = fingerprint.split("; ")
    return kind, {name: value for name, _, value in (fact.partition("=") for fact in facts)}


class Batch(NamedTuple):
    """One checked batch, split into the arrays that model_fn receives and the values that stay on the host.

    It is a tuple rather than a dataclass because every step creates one (0.3 against 2 microseconds).

    Attributes:
        features: the features, a tree (nested dicts, tuples) of numpy arrays whose first axis is the example.
        labels: the labels in the same form. None without labels.
        host: the values that model_fn never receives, by feature name (`"labels"` for labels): strings, bytes, objects,
            dates.
        size: the number of examples in the batch, without padding.
        position: the position of the input after this batch.
        weights: float32[rows], 1 for an example and 0 for padding; None if the input never pads.
        total: the number of rows of the global batch, of which this batch has those of this process
            (`InputContext.rows`). `size` then counts all processes. None if the batch is not part of a global batch.
    """

    features: Any
    labels: Any
    host: Mapping[str, np.ndarray]
    size: int
    position: InputPosition
    weights: np.ndarray | None = None
    total: int | None = None


@dataclass(frozen=True, kw_only=True)
class InputContext:
    """Describes the shard that an input_fn should read, like `tf.distribute.InputContext`.

    Args:
        num_input_pipelines: the number of processes that read the input.
        input_pipeline_id: the index of this process among them, from 0.
        num_replicas_in_sync: the number of devices that share a global batch.
        parts: the parts of a global batch that the devices of this process hold, in ascending order, out of
            `num_replicas_in_sync` equal parts. Empty: the part `input_pipeline_id` of `num_input_pipelines`.

    Raises:
        ArgumentError: a count is below 1, the id is not below the number of pipelines, or a part is not below the
            number of replicas.

    Example:
        >>> context = InputContext(num_input_pipelines=2, input_pipeline_id=1, num_replicas_in_sync=4)
        >>> context.get_per_replica_batch_size(64)
        16
    """

    num_input_pipelines: int = 1
    input_pipeline_id: int = 0
    num_replicas_in_sync: int = 1
    parts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name, least in (("num_input_pipelines", 1), ("num_replicas_in_sync", 1), ("input_pipeline_id", 0)):
            check_count(name, getattr(self, name), least=least)
        if not 0 <= self.input_pipeline_id < self.num_input_pipelines:
            raise ArgumentError(
                f"input_pipeline_id must be from 0 to {self.num_input_pipelines - 1} (num_input_pipelines - 1), "
                f"given: {self.input_pipeline_id}."
            )
        whole = range(self.num_replicas_in_sync)
        if any(part not in whole for part in self.parts) or list(self.parts) != sorted(set(self.parts)):
            raise ArgumentError(
                f"parts must be ascending numbers from 0 to {self.num_replicas_in_sync - 1} (num_replicas_in_sync - "
                f"1), given: {self.parts}."
            )

    def rows(self, total: int) -> np.ndarray:
        """Returns the rows of a global batch that this process supplies: int64[rows], ascending.

        If the batch does not divide evenly into the parts, as a last batch may not, every process has all rows.

        Args:
            total: the number of rows of the global batch.

        Example:
            >>> context = InputContext(num_input_pipelines=2, input_pipeline_id=1)
            >>> context.rows(6).tolist(), context.rows(5).tolist()
            ([3, 4, 5], [0, 1, 2, 3, 4])
        """
        parts = self.parts or (self.input_pipeline_id,)
        count = self.num_replicas_in_sync if self.parts else self.num_input_pipelines
        rows = np.arange(total)
        return rows if total % count else rows.reshape(count, -1)[list(parts)].reshape(-1)

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Returns the number of rows of a global batch that one replica receives.

        Raises:
            ArgumentError: the global batch does not divide evenly among the replicas, or is not a number of rows.
        """
        check_count("global_batch_size", global_batch_size)
        if global_batch_size % self.num_replicas_in_sync:
            raise ArgumentError(
                f"The `global_batch_size` {global_batch_size} is not divisible by `num_replicas_in_sync` "
                f"{self.num_replicas_in_sync}. Choose a multiple of it."
            )
        return global_batch_size // self.num_replicas_in_sync


Ragged = Literal["exact", "pad"]


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """The properties that an input declares. An iterator has them as its attribute `input_options`.

    Args:
        fresh_arrays: whether the input never writes into an array that it has yielded, so that arrays are not copied.
        replay: whether drawing and dropping batches reaches a position, if the iterator has no `get_state`/`set_state`.
        ragged: "exact" runs a short last batch at its own shape. "pad" fills it up and marks the rows in the weights.
        batch_size: the number of rows of a padded batch. None: the number in the first batch.
        endless: whether the input never ends. An evaluation of it requires a number of steps.
        varying_shapes: whether sizes other than the batch size may change from batch to batch, such as lengths padded
            to a few buckets. Every shape costs one more compiled program.
        whole: whether each of several processes draws the same global batches and keeps its own rows.

    Raises:
        ArgumentError: `ragged` is unknown, or the batch size is below 1.
    """

    fresh_arrays: bool = False
    replay: bool = True
    ragged: Ragged = "exact"
    batch_size: int | None = None
    endless: bool = False
    varying_shapes: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        if self.ragged not in ("exact", "pad"):
            raise ArgumentError(f'ragged must be "exact" (the true shape) or "pad", given: {self.ragged!r}.')
        if self.batch_size is not None:
            check_count("batch_size", self.batch_size)
