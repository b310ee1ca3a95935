"""Raw signatures: what clients send and see, with host transforms before and after an array signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from estimator_core._export.contract import LoadedSignature
from estimator_core._export.features import Feature
from estimator_core._export.host_ops import HostProgram
from estimator_core._inputs.transforms import HostTransform, apply_transforms
from estimator_core.errors import ArgumentError, ExportError, InputError

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


def renaming(received: Mapping[Any, Feature], features: Mapping[Any, Feature]) -> Sequence[HostTransform]:
    """The transforms for a receiver without transforms: nothing, or a `Rename` from received arrays to features.

    Raises:
        ExportError: a feature is not among the received ones.
    """
    names: dict[str, str] = {}
    for name, feature in features.items():
        same = [key for key, value in received.items() if value is feature] or [key for key in received if key == name]
        if not same:
            raise ExportError(
                f"Feature {name!r} cannot be made from the receiver_tensors {sorted(map(str, received))}: give the "
                "same Feature object "
                "under its new name, or transforms that make it."
            )
        names[str(same[0])] = str(name)
    return (Rename(names),) if any(old != new for old, new in names.items()) else ()


def features_after(
    transforms: Sequence[HostTransform],
    features: Mapping[Any, Feature],
    examples: Mapping[Any, object] = MappingProxyType({}),
) -> dict[Any, Feature]:
    """What host transforms return, found with a batch of zeros and empty strings.

    Args:
        transforms: in order.
        features: what they take, by name.
        examples: arrays of a batch, by name, that replace the zeros.

    Raises:
        ExportError: a transform cannot take that batch.
    """
    if not transforms:
        return dict(features)
    known = {name: np.asarray(examples[name]) for name in features if name in examples}
    rows = next((len(value) for value in known.values() if value.ndim), 2)
    batch = {
        name: np.zeros([rows if size is None else size for size in feature.shape], _numpy(feature))
        for name, feature in features.items()
    }

    def after(text: str) -> Mapping[str, np.ndarray]:
        filled = {name: np.full(a.shape, text, object) if a.dtype == object else a for name, a in batch.items()}
        return apply_transforms(transforms, {**filled, **known})

    try:
        found = after("")
    except InputError as error:
        try:
            found = after("0")  # a sequence of empty texts has no steps, and one of zeros beside it has some
        except InputError:
            raise ExportError(
                "The host transforms of the Estimator failed on a batch of zeros and empty strings, which shows the "
                "form of their results. Pass the transforms to the receiver instead, with the features that they "
                f"return. The error was: {error}"
            ) from error
    batched = any(feature.shape[:1] == (None,) for feature in features.values())
    return {
        name: Feature((None if batched else array.shape[0], *array.shape[1:]), str(array.dtype))
        for name, array in found.items()
    }


def _numpy(feature: Feature) -> Any:
    import ml_dtypes

    return object if feature.dtype == "string" else ml_dtypes.bfloat16 if feature.dtype == "bfloat16" else feature.dtype


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

    def __call__(self, **arrays: object) -> dict[str, np.ndarray]:
        """Runs transforms and signature on one batch.

        Raises:
            ArgumentError: inputs are missing or unknown, or a transform refuses them.
        """
        missing, unknown = sorted(self.inputs.keys() - arrays.keys()), sorted(arrays.keys() - self.inputs.keys())
        if missing or unknown:
            raise ArgumentError(
                f"missing inputs {missing}, unknown inputs {unknown}. The signature takes {dict(self.inputs)}."
            )
        return self.show(self.signature(**self.prepare({name: np.asarray(value) for name, value in arrays.items()})))

    def prepare(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What the array signature takes, from what a client sends."""
        try:
            prepared = apply_transforms(self.before, arrays)
        except InputError as error:
            raise ArgumentError(str(error)) from error
        return {name: prepared[name] for name in self.signature.inputs if name in prepared}

    def show(self, outputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """What a client sees, from what the array signature returns."""
        shown = apply_transforms(self.after, {name: np.asarray(value) for name, value in outputs.items()})
        for name in _CLASSES:
            if self.class_names and name in shown and np.issubdtype(shown[name].dtype, np.integer):
                shown[name] = np.asarray(self.class_names, object)[shown[name]]
        return shown
