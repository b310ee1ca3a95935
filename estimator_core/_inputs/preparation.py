"""What batches go through on the host before the step: the contract with the data, then the host transforms."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator_core._inputs.calling import InputFn

if TYPE_CHECKING:
    from estimator_core._inputs.data_contract import DataContract


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
        model_fn: Any,
        features: Sequence[Any],
        labels: Sequence[Any],
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
            from estimator_core._inputs.data_contract import under_contract

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
