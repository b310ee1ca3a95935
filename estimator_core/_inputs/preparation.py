"""Prepares batches on the host before the step: first the contract of the data, then the host transforms."""

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
    """Checks data, converts it and learns from it in train, evaluate and predict.

    Its transforms do the same in exports.

    A contract is the attribute `data_contract` of a model_fn, or an argument of an Estimator. A contract that converts
    labels to numbers may define `exported_labels(memory)`. It returns the transforms that convert the labels in
    exported TRAIN and EVAL signatures.
    """

    def open(
        self, source: Any, *, mode: str, memory: Path, check: bool
    ) -> tuple[Any, Callable[[PyTree], PyTree] | None]:
        """Called once for each input, before its first batch is drawn.

        Args:
            source: the iterable that input_fn returned. An iterable over arrays in memory has `mapped`, which accepts a
                function of all features and all labels. An iterable over files has `parts`, which reads the files again
                and reports where rows are.
            mode: one of `ModeKeys`.
            memory: the model_dir or the checkpoint whose variables contain what was learned before.
            check: `RunConfig.check_inputs`.

        Returns:
            The iterable to read instead of `source`, and a function for each of its elements (or None). The function
            runs in the input thread, before host transforms.

        Raises:
            InputError: the model cannot use the data.
        """
        ...

    def transforms(self, memory: Path) -> Sequence[HostTransform]:
        """Returns the transforms of exported features that run before the host transforms of the Estimator."""
        ...


def under_contract(input_fn: InputFn, contract: DataContract, *, memory: Path, check: bool) -> WrappedInput:
    """Returns an input_fn whose data is checked and converted by a contract.

    Raises:
        ArgumentTypeError: `contract` is not a DataContract, or input_fn is not callable.
    """
    if not isinstance(contract, DataContract):
        raise ArgumentTypeError(f"data_contract needs the methods open and transforms, given: {contract!r}.")
    check_input_fn(input_fn)
    return WrappedInput(
        input_fn=input_fn,
        opened=lambda source, mode: contract.open(source, mode=mode, memory=memory, check=check),
    )


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """Defines how one Estimator prepares its batches.

    Args:
        features: transforms of features.
        labels: transforms of labels.
        contract: the contract of the data.
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
        """Combines the attributes of model_fn, which come first, with the arguments of an Estimator."""
        return cls(
            features=(*getattr(model_fn, "host_transforms", ()), *features),
            labels=(*getattr(model_fn, "label_transforms", ()), *labels),
            contract=contract or getattr(model_fn, "data_contract", None),
            check=check,
        )

    def around(self, input_fn: InputFn, memory: str, *before: Any) -> InputFn:
        """Returns an input_fn whose batches are prepared.

        Args:
            input_fn: the input_fn of the user.
            memory: the model_dir or checkpoint whose variables contain what the contract learned before.
            before: transforms of features that run before all others.
        """
        if self.contract is not None:
            input_fn = under_contract(input_fn, self.contract, memory=Path(memory), check=self.check)
        if not (self.features or self.labels):
            return input_fn
        from estimator_core._inputs.transforms import with_transforms

        return with_transforms(input_fn, features=(*before, *self.features), labels=self.labels)

    def observing(self, model_dir: Path | None) -> contextlib.AbstractContextManager[tuple[Any, ...]]:
        """Returns a context of transforms that record the features of training.

        The record is stored in model_dir, unless model_dir is None.
        """
        if not self.features:
            return contextlib.nullcontext(())
        from estimator_core._inputs.seen_features import noting

        return noting(model_dir)

    def exported(self, memory: str) -> tuple[Any, ...]:
        """Returns the transforms of features in an export."""
        kept = () if self.contract is None else self.contract.transforms(Path(memory))
        return (*kept, *self.features)

    def exported_labels(self, memory: str) -> tuple[Any, ...]:
        """Returns the transforms of the labels in a request to a TRAIN or EVAL signature."""
        of_contract = getattr(self.contract, "exported_labels", None)
        return (*(() if of_contract is None else of_contract(Path(memory))), *self.labels)
