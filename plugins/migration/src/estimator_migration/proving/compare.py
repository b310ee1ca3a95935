"""Compares the two sides of a proof, quantity by quantity, in the order in which a program computes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from estimator_migration.proving.computed import Arrays, Computed, Evaluated
from estimator_migration.proving.guided_steps import Led

_GLOBAL_STEP = "global_step"


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A quantity that both sides compute.

    Args:
        stage: the place in the run, such as "gradients of step 1".
        name: the name in the stage, or "" for the only one.
        difference: the largest difference. For numbers, it is relative to the largest absolute value of TensorFlow, or
            absolute if that is below 1. For strings, it is the share that differs. It is infinite if they cannot be
            compared.
        note: the reason why they cannot be compared, or "".
    """

    stage: str
    name: str
    difference: float
    note: str = ""

    @property
    def follows_steps(self) -> bool:
        """Whether the quantity includes rounding of earlier steps."""
        return self.stage.startswith("weights after step") or self.stage.endswith("at the end") or self._is_later_loss

    @property
    def _is_later_loss(self) -> bool:
        return self.stage.startswith("loss of step") and self.stage != "loss of step 1"


def compare(here: Computed, there: Computed, names: Mapping[str, str]) -> list[Quantity]:
    """Returns all quantities, in the order of the run.

    Args:
        here: the side of estimator-core.
        there: the side of TensorFlow.
        names: the names of variables, metrics and predictions that differ: the name there, by name here.
    """
    return list(_quantities(here, there, {there_: here_ for here_, there_ in names.items()}))


def compare_led(here: Led, there: Computed, names: Mapping[str, str]) -> list[Quantity]:
    """Returns the quantities of steps from the weights of the other side. Empty if only one step is recorded.

    Args:
        here: the side of estimator-core.
        there: the side of TensorFlow.
        names: as in `compare`.
    """
    place = {there_: here_ for here_, there_ in names.items()}
    return list(_led(here, there, names, place)) if here.end is not None and here.updates else []


def _led(here: Led, there: Computed, names: Mapping[str, str], place: Mapping[str, str]) -> Iterator[Quantity]:
    for step, loss in enumerate(here.losses, 1):
        yield _quantity(f"loss of step {step} from the same weights", "", loss, there.losses[step - 1])
        at = f"gradients of step {step} from the same weights"
        yield from _each(at, here.gradients[step - 1], there.gradients[step - 1], place)
        for stage, values in (
            (f"other variables after step {step} from the same weights", here.states[step - 1]),
            (f"weights after {step} updates from the same gradients", here.updates[step - 1]),
        ):
            for name, value in sorted(values.items()):
                yield _quantity(stage, name, value, there.weights[step][names.get(name, name)])
    assert here.end is not None, "the caller has looked"
    yield from _evaluation("with the same weights", here.end, there.end, place)


def _quantities(here: Computed, there: Computed, place: Mapping[str, str]) -> Iterator[Quantity]:
    for name in sorted(name for name in there.trainable if place.get(name, name) not in here.trainable):
        yield Quantity(stage="variables", name=name, difference=np.inf, note="trained there, not here")
    yield from _evaluation("at the start", here.start, there.start, place)
    for step, (ours, theirs) in enumerate(zip(here.losses, there.losses, strict=True), 1):
        yield _quantity(f"loss of step {step}", "", ours, theirs)
        if step == 1:
            yield from _each("gradients of step 1", here.gradients[0], there.gradients[0], place)
        inverse = {ours: theirs for theirs, ours in place.items()}
        for name, value in sorted(here.weights[step].items()):
            yield _quantity(f"weights after step {step}", name, value, there.weights[step][inverse.get(name, name)])
    yield from _evaluation("at the end", here.end, there.end, place)


def _evaluation(when: str, here: Evaluated, there: Evaluated, place: Mapping[str, str]) -> Iterator[Quantity]:
    yield from _each(f"predictions {when}", here.predictions, there.predictions, place)
    metrics = {name: value for name, value in there.metrics.items() if name != _GLOBAL_STEP}
    yield from _each(f"metrics {when}", here.metrics, metrics, place)


def _each(stage: str, here: Arrays, there: Arrays, place: Mapping[str, str]) -> Iterator[Quantity]:
    for name, value in sorted(there.items()):
        ours = place.get(name, name)
        if ours in here:
            yield _quantity(stage, name, here[ours], value)
        else:
            known = ", ".join(sorted(here)) or "none"
            yield Quantity(stage=stage, name=name, difference=np.inf, note=f"not here; the names here are: {known}")


def _quantity(stage: str, name: str, here: Any, there: Any) -> Quantity:
    ours, theirs = np.asarray(here), np.asarray(there)
    if ours.shape != theirs.shape:
        return Quantity(stage=stage, name=name, difference=np.inf, note=f"{ours.shape} here, {theirs.shape} there")
    if theirs.dtype.kind in "OSU" or ours.dtype.kind in "OSU":
        different = [_text(one) != _text(other) for one, other in zip(ours.ravel(), theirs.ravel(), strict=True)]
        return Quantity(stage=stage, name=name, difference=float(np.mean(different)) if different else 0.0)
    return Quantity(stage=stage, name=name, difference=_largest(ours.astype(np.float64), theirs.astype(np.float64)))


def _largest(here: np.ndarray, there: np.ndarray) -> float:
    """Returns the largest difference. Equal values, infinities and pairs of NaN differ by 0, one NaN by infinity."""
    equal = (here == there) | (np.isnan(here) & np.isnan(there))
    if equal.all():
        return 0.0
    with np.errstate(invalid="ignore"):
        apart = np.where(equal, 0.0, np.abs(here - there))
    scale = np.max(np.abs(there), initial=1.0, where=np.isfinite(there))
    return float(np.max(np.where(np.isnan(apart), np.inf, apart)) / scale)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
