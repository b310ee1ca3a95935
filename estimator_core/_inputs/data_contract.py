"""`DataContract`: what a model asks of its data, seen to on the host before anything else gets a batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from estimator_core._inputs.calling import InputFn, check_input_fn
from estimator_core._inputs.wrapped import WrappedInput
from estimator_core._types import PyTree
from estimator_core.errors import ArgumentTypeError

if TYPE_CHECKING:
    from estimator_core._inputs.transforms import HostTransform


@runtime_checkable
class DataContract(Protocol):
    """Checks, converts and learns from data in train, evaluate, predict and, by its transforms, in exports.

    A model_fn carries one as its attribute `data_contract`, or an Estimator is given one.
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
