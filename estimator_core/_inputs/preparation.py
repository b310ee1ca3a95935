"""What batches go through on the host before the step: the contract with the data, then the host transforms."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from estimator_core._inputs.input_fn import InputFn, WrappedInput, check_input_fn
from estimator_core._types import PyTree
from estimator_core.errors import ArgumentTypeError

if TYPE_CHECKING:
    from estimator_core._inputs.transforms import HostTransform


@runtime_checkable
class DataContract(Protocol):
    """Checks, converts and learns from data in train, evaluate, predict and, by its transforms, in exports.

    A model_fn carries one as its attribute `data_contract`, or an Estimator is given one. One that makes numbers of
    labels may have a method `exported_labels(memory)`: the transforms that do so in exported TRAIN and EVAL signatures.
    """

    def open(
        self, source: Any, *, mode: str, memory: Path, check: bool
    ) -> tuple[Any, Callable[[PyTree], PyTree] | None]:
        """Called once for each input, before its first batch is drawn.

        Args:
            source: the iterable that input_fn returned. One over arrays in memory has `mapped`, which takes a function
                of all features and all labels; one over files has `parts`, which reads them again and says where rows
                lie.
            mode: one of `ModeKeys`.
            memory: the model_dir or the checkpoint whose variables hold what was learned before.
            check: `RunConfig.check_inputs`.

        Returns:
            What is read in place of `source`, and what each of its elements goes through (None: nothing), in the input
            thread, before host transforms.

        Raises:
            InputError: data that the model cannot use.
        """
        ...

    def transforms(self, memory: Path) -> Sequence[HostTransform]:
        """What the features of an export go through before the Estimator's own host transforms."""
        ...


def under_contract(input_fn: InputFn, contract: DataContract, *, memory: Path, check: bool) -> WrappedInput:
    """An input_fn whose data keeps a contract.

    Raises:
        ArgumentTypeError: `contract` is none, or input_fn is not callable.
    """
    if not isinstance(contract, DataContract):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ArgumentTypeError(f"data_contract needs the methods open and transforms, given: {contract!r}.")
    check_input_fn(input_fn)
    return WrappedInput(
        input_fn=input_fn,
        opened=lambda source, mode: contract.open(source, mode=mode, memory=memory, check=check),
    )


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """Of one Estimator.

    Args:
        features: transforms of features.
        labels: transforms of labels.
        contract: with the data.
        check: whether the contract checks values.
    """

    features: tuple[Any, ...]
    labels: tuple[Any, ...]
    contract: DataContract | None
    check: bool

    @classmethod
    def of(
        cls,
        model_fn: object,
        features: Sequence[object],
        labels: Sequence[object],
        contract: DataContract | None,
        *,
        check: bool,
    ) -> Preparation:
        """What model_fn carries as attributes comes first."""
        return cls(
            features=(*getattr(model_fn, "host_transforms", ()), *features),
            labels=(*getattr(model_fn, "label_transforms", ()), *labels),
            contract=contract or getattr(model_fn, "data_contract", None),
            check=check,
        )

    def around(self, input_fn: InputFn, memory: str, *before: Any) -> InputFn:
        """An input_fn whose batches are prepared.

        Args:
            input_fn: the user's.
            memory: the model_dir or checkpoint whose variables hold what the contract learned before.
            before: transforms that see features before all others.
        """
        if self.contract is not None:
            input_fn = under_contract(input_fn, self.contract, memory=Path(memory), check=self.check)
        if not (self.features or self.labels):
            return input_fn
        from estimator_core._inputs.transforms import with_transforms

        return with_transforms(input_fn, features=(*before, *self.features), labels=self.labels)

    def observing(self, model_dir: Path | None) -> contextlib.AbstractContextManager[tuple[Any, ...]]:
        """Within, what is given notes what training sees of features; kept in model_dir, unless it is None."""
        if not self.features:
            return contextlib.nullcontext(())
        from estimator_core._inputs.seen import noting

        return noting(model_dir)

    def exported(self, memory: str) -> tuple[Any, ...]:
        """The transforms of features that an export carries."""
        kept = () if self.contract is None else self.contract.transforms(Path(memory))
        return (*kept, *self.features)

    def exported_labels(self, memory: str) -> tuple[Any, ...]:
        """What the labels of a request to a TRAIN or EVAL signature go through."""
        of_contract = getattr(self.contract, "exported_labels", None)
        return (*(() if of_contract is None else of_contract(Path(memory))), *self.labels)
