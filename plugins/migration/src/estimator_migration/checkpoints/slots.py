"""Slots of optimizers: their names in TensorFlow, and the matching slots of optax."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

#: The name of a slot in optax: its endings in TensorFlow. Of Keras optimizers, under `training/NAME`;
#: of tf.compat.v1.train, whose second slot has `_1`; of BERT's optimizer.
_ENDINGS: Mapping[str, tuple[str, ...]] = {
    "mu": ("m", "Adam", "adam_m"),
    "nu": ("v", "Adam_1", "adam_v", "rms", "RMSProp"),
    "sum_of_squares": ("accumulator", "Adagrad"),
    "accumulators": ("accumulator", "Ftrl"),
    "linear": ("linear", "Ftrl_1"),
    "trace": ("momentum", "Momentum"),
}
_COUNTERS = ("count", "step")


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A leaf of the optimizer's state.

    Args:
        word: its kind: "mu", "nu", "count", ...
        variable: the path of its variable; "" for a slot of the whole optimizer.
    """

    word: str
    variable: str

    @property
    def counts_steps(self) -> bool:
        """Whether the slot is the number of steps."""
        return self.word in _COUNTERS


def slot_of(leaf: str, variables: Iterable[str]) -> Slot:
    """The slot of a leaf of the optimizer's state.

    Args:
        leaf: its path in a checkpoint.
        variables: paths of the variables.

    Example:
        >>> slot_of("0/dense/mu/dnn/kernel", ["dnn/kernel"])
        Slot(word='mu', variable='dnn/kernel')
        >>> slot_of("1/tables/c/weights/0/sum_of_squares", ["c/weights"]).word
        'sum_of_squares'
    """
    found = [path for path in variables if f"/{path}/" in f"/{leaf}/"]
    if not found:
        return Slot(word=leaf.rpartition("/")[2], variable="")
    variable = max(found, key=len)
    before, _, after = f"/{leaf}/".rpartition(f"/{variable}/")
    rest = after.strip("/") or before.strip("/")
    return Slot(word=rest.rpartition("/")[2], variable=variable)


def names_of(slot: Slot, tensors: Iterable[str]) -> list[str]:
    """The names in a checkpoint of TensorFlow that may be the slot, the likeliest first.

    Args:
        slot: a slot of a variable.
        tensors: the names in the checkpoint.
    """
    endings = [f"{slot.variable}/{ending}" for ending in _ENDINGS.get(slot.word, ())]
    return [
        name
        for ending in endings
        for name in tensors
        if name == ending or (name.startswith("training/") and name.endswith(f"/{ending}"))
    ]
