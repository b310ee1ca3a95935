"""Slots of optimizers: their names in TensorFlow, and the matching slots of optax."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

#: The endings of slots in TensorFlow, by their name in optax. Keras optimizers have a scope, which heads put under
#: `training`. In tf.compat.v1.train, the second slot has `_1`. The optimizer of BERT has its own endings.
_ENDINGS: Mapping[str, tuple[str, ...]] = {
    "mu": ("m", "Adam", "adam_m", "mg"),
    "nu": ("v", "Adam_1", "adam_v", "rms", "RMSProp"),
    "sum_of_squares": ("accumulator", "Adagrad"),
    "accumulators": ("accumulator", "Ftrl"),
    "linear": ("linear", "Ftrl_1"),
    "trace": ("momentum", "Momentum", "RMSProp_2", "RMSProp_1"),
}
#: The scopes before the ending. The slots of a variable that a partitioner made have a separate scope.
_PLACES = ("", "t_0/", "part_0/")
_COUNTERS = ("count", "step")


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A leaf of the optimizer's state.

    Args:
        word: the kind of the slot: "mu", "nu", "count", ...
        variable: the path of its variable, or "" for a slot of the whole optimizer.
    """

    word: str
    variable: str

    @property
    def counts_steps(self) -> bool:
        """Whether the slot is the number of steps."""
        return self.word in _COUNTERS


def slot_of(leaf: str, variables: Iterable[str]) -> Slot:
    """Returns the slot of a leaf of the optimizer's state.

    Args:
        leaf: the path of the leaf in a checkpoint.
        variables: the paths of the variables.

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


def names_of(slot: Slot, tensors: Iterable[str], variables: Iterable[str] = ()) -> list[str]:
    """Returns the names in a checkpoint of TensorFlow that may be the slot. There are several with several optimizers.

    A slot may be in any scope. A slot in the scope of its variable is the likeliest.

    Args:
        slot: a slot of a variable.
        tensors: the names in the checkpoint.
        variables: those names that belong to variables, not to slots.

    Example:
        >>> names_of(Slot(word="mu", variable="w"), ["w", "user/w", "Adam/w/m", "Adam/user/w/m"])
        ['Adam/w/m']
    """
    names = frozenset(tensors)
    words = _ENDINGS.get(slot.word, ())
    endings = [f"{slot.variable}/{place}{word}" for word in words for place in _PLACES]
    if slot.word == "mu":  # A centered RMSProp has the mean in its second slot. Any other has the momentum there.
        starts = [f"{slot.variable}/{place}RMSProp" for place in _PLACES]
        endings += [f"{start}_1" for start in starts if any(f"/{name}".endswith(f"/{start}_2") for name in names)]
    others = frozenset(variables)
    slots, scoped, doubtful = names - others, list[str](), list[str]()
    for ending in endings:
        if ending in slots and not _of_a_shorter_name(ending, others):
            return [ending]
        doubtful += [ending] if ending in slots else []
        scoped += [name for name in sorted(slots) if name.endswith(f"/{ending}")]
    return [name for name in scoped if not _of_a_longer_name(name, slot.variable, names)] or doubtful[:1]


def _of_a_shorter_name(name: str, variables: frozenset[str]) -> bool:
    """Returns whether a slot may belong to a scoped variable: `Adam/w/part_0/m` to `w/part_0`, beside `Adam/w`."""
    scopes = name.split("/")[:-1]
    return any("/".join(scopes[start:]) in variables for start in range(1, len(scopes)))


def _of_a_longer_name(name: str, variable: str, names: frozenset[str]) -> bool:
    """Returns whether a slot belongs to another variable with the same ending of its name: `user/w` and `w`."""
    scopes = name.rpartition(f"/{variable}/")[0].split("/")
    return any("/".join([*scopes[start:], variable]) in names for start in range(len(scopes)))


def factor_of(slot: Slot, name: str, tensors: Mapping[str, np.ndarray]) -> float:
    """Returns the factor that converts a slot of TensorFlow. NaN: the rate varies, or is not in the checkpoint.

    The momentum of SGD is a sum of updates in Keras, and of gradients in optax and tf.compat.v1.train. The momentum of
    RMSProp is always a sum of updates, which optax adds and TensorFlow subtracts.

    Args:
        slot: the slot, with the name of its variable in TensorFlow.
        name: the name of the slot in TensorFlow.
        tensors: the arrays of TensorFlow, by name.

    Example:
        >>> slot, rate = Slot(word="trace", variable="w"), np.float32(0.5)
        >>> factor_of(slot, "training/SGD/w/momentum", {"training/SGD/learning_rate": rate})
        -2.0
        >>> factor_of(slot, "w/Momentum", {}), factor_of(slot, "w/RMSProp_1", {})
        (1.0, -1.0)
    """
    before, _, last = name.rpartition("/")
    if slot.word == "trace" and (last.startswith("RMSProp") or f"{before}/rms" in tensors):
        return -1.0
    scopes = name.split("/")
    known = ("/".join(scopes[:end]) for end in range(len(scopes) - 1, 0, -1))
    optimizer = next((scope for scope in known if f"{scope}/learning_rate" in tensors), "")
    own = not optimizer and name.startswith(f"{slot.variable}/")  # without the scope of an optimizer
    if slot.word != "trace" or last != "momentum" or own:
        return 1.0
    rate, decay = (float(tensors.get(f"{optimizer}/{word}", 0.0)) for word in ("learning_rate", "decay"))
    return -1.0 / rate if rate and not decay else math.nan
