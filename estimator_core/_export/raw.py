"""Raw signatures: what clients send and see, with host transforms before and after an array signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from estimator_core._export.contract import LoadedSignature
from estimator_core._export.host_ops import HostProgram
from estimator_core._export.receivers import Feature
from estimator_core._inputs.transforms import HostTransform, apply_transforms
from estimator_core.errors import ArgumentError, InputError

_CLASSES = ("classes", "all_classes")  # outputs that hold class ids


class Rename:
    """A host transform that renames arrays. Arrays that it does not name keep their names.

    Args:
        names: the new name of each array by its old one.

    Example:
        >>> Rename({"input": "x"}).apply({"input": np.zeros(1)})
        {'x': array([0.])}
    """

    name, version = "rename", 1

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = dict(names)

    def config(self) -> dict[str, Any]:
        """The arguments."""
        return {"names": self._names}

    @property
    def files(self) -> Mapping[str, Path]:
        """Returns an empty mapping, because it needs no files."""
        return {}

    def apply(self, batch: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The batch under the new names."""
        return {self._names.get(name, name): array for name, array in batch.items()}

    def program(self, features: Mapping[str, Feature]) -> HostProgram:
        """A program without operations, because only names differ."""
        outputs = {self._names.get(name, name): name for name in features}
        return HostProgram(outputs=outputs, features={new: features[old] for new, old in outputs.items()})


@dataclass(frozen=True, kw_only=True)
class RawSignature:
    """An array signature between host transforms. It takes and returns arrays by name, strings among them.

    Args:
        signature: the array signature.
        inputs: what a client sends.
        before: transforms from that to the inputs of `signature`.
        after: transforms from the outputs of `signature` to what a client sees.
        class_names: names of the ids in the outputs "classes" and "all_classes".
    """

    signature: LoadedSignature
    inputs: Mapping[str, Feature]
    before: Sequence[HostTransform] = ()
    after: Sequence[HostTransform] = ()
    class_names: Sequence[str] | None = None

    @property
    def outputs(self) -> Mapping[str, Feature]:
        """What the array signature returns. Transforms may add to it, and class names are strings."""
        outputs = dict(self.signature.outputs)
        for name in _CLASSES:
            if self.class_names and name in outputs:
                outputs[name] = Feature(outputs[name].shape, "string")
        return outputs

    def __call__(self, /, **arrays: object) -> dict[str, np.ndarray]:
        """Runs transforms and signature on one batch.

        Raises:
            ArgumentError: inputs are missing, unknown or nested unevenly, or a transform refuses them.
        """
        missing, unknown = sorted(self.inputs.keys() - arrays.keys()), sorted(arrays.keys() - self.inputs.keys())
        if missing or unknown:
            raise ArgumentError(
                f"missing inputs {missing}, unknown inputs {unknown}. The signature takes {dict(self.inputs)}."
            )
        given = {name: _array(name, value) for name, value in arrays.items()}
        try:
            found = self.signature(**self.prepare(given))
        except ArgumentError as error:
            raise ArgumentError(f"{error}{self._misfits(given, str(error))}") from error
        return self.show(found)

    def prepare(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What the array signature takes, from what a client sends."""
        try:
            prepared = apply_transforms(self.before, arrays)
        except InputError as error:
            batched = (name for name in self.inputs if self.inputs[name].shape[:1] == (None,) and arrays[name].ndim)
            sizes = {name: len(arrays[name]) for name in batched}
            differ = f" The inputs differ in their batch sizes: {sizes}." if len(set(sizes.values())) > 1 else ""
            raise ArgumentError(f"{error}{differ}") from error
        return {name: prepared[name] for name in self.signature.inputs if name in prepared}

    def _misfits(self, arrays: Mapping[str, np.ndarray], told: str) -> str:
        """What a client sent in another shape, in words: transforms and the array signature have other names for it."""
        found: list[str] = []
        for name, feature in self.inputs.items():
            misfit = feature.misfit(arrays[name].shape)
            words = f"input {name!r} must have shape {feature.shape}, given {arrays[name].shape}. {misfit}"
            if misfit is not None and words not in told:
                found.append(f" In the request, {words}")
        return "".join(found)

    def show(self, outputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What a client sees, from what the array signature returns."""
        shown = apply_transforms(self.after, {name: np.asarray(value) for name, value in outputs.items()})
        for name in _CLASSES:
            if self.class_names and name in shown and np.issubdtype(shown[name].dtype, np.integer):
                shown[name] = np.asarray(self.class_names, object)[shown[name]]
        return shown


def _array(name: str, value: object) -> np.ndarray:
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ArgumentError(f"input {name!r} is not an array: {error} Lists must be nested evenly.") from error
