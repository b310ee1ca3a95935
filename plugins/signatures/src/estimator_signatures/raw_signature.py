"""Raw signatures: array signatures with host transforms before and after them, as clients call them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral

import ml_dtypes
import numpy as np

from estimator_core.errors import ArgumentError, InputError
from estimator_core.export import Feature, LoadedSignature
from estimator_core.inputs import HostTransform, apply_transforms

_CLASSES = ("classes", "all_classes")  # the outputs that contain class ids


@dataclass(frozen=True, kw_only=True)
class RawSignature:
    """An array signature between host transforms. It accepts and returns arrays by name, including strings.

    Args:
        signature: the array signature.
        inputs: the inputs that a client sends.
        before: transforms from these inputs to the inputs of `signature`.
        after: transforms from the outputs of `signature` to the answer that a client receives.
        class_names: the names of the ids in the outputs "classes" and "all_classes".
    """

    signature: LoadedSignature
    inputs: Mapping[str, Feature]
    before: Sequence[HostTransform] = ()
    after: Sequence[HostTransform] = ()
    class_names: Sequence[str] | None = None

    @property
    def outputs(self) -> Mapping[str, Feature]:
        """The outputs that a client receives, as a batch of zeros shows them. Transforms may add outputs, and names of
        classes are strings. If a transform refuses zeros: the outputs of the array signature, with names of classes.
        """
        return self._shown_outputs

    @cached_property
    def _shown_outputs(self) -> Mapping[str, Feature]:
        own = self.signature.outputs
        zeros = {name: _zeros(feature) for name, feature in own.items()}
        try:
            shown = self.show(zeros)
        except InputError:
            shown = self._named(zeros)
        batched = any(feature.shape[:1] == (None,) for feature in own.values())
        return {name: _form(array, own.get(name), batched) for name, array in shown.items()}

    def __call__(self, /, **arrays: object) -> dict[str, np.ndarray]:
        """Runs the transforms and the signature on one batch.

        Raises:
            ArgumentError: inputs are missing, unknown, nested unevenly or no numbers where numbers are received, or a
                transform refuses them.
        """
        missing, unknown = sorted(self.inputs.keys() - arrays.keys()), sorted(arrays.keys() - self.inputs.keys())
        if missing or unknown:
            raise ArgumentError(
                f"missing inputs {missing}, unknown inputs {unknown}. The signature takes {dict(self.inputs)}."
            )
        given = {name: _array(name, value, self.inputs[name]) for name, value in arrays.items()}
        try:
            found = self.signature(**self.prepare(given))
        except ArgumentError as error:
            raise ArgumentError(f"{error}{self._misfits(given, str(error))}") from error
        return self.show(found)

    def prepare(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Converts the inputs of a client to inputs of the array signature."""
        try:
            prepared = apply_transforms(self.before, arrays)
        except InputError as error:
            batched = (name for name in self.inputs if self.inputs[name].shape[:1] == (None,) and arrays[name].ndim)
            sizes = {name: len(arrays[name]) for name in batched}
            differ = f" The inputs differ in their batch sizes: {sizes}." if len(set(sizes.values())) > 1 else ""
            raise ArgumentError(f"{error}{differ}") from error
        return {name: prepared[name] for name in self.signature.inputs if name in prepared}

    def _misfits(self, arrays: Mapping[str, np.ndarray], told: str) -> str:
        """Describes client inputs of the wrong shape, by the client's names. Transforms and the array signature use
        other names.
        """
        found: list[str] = []
        for name, feature in self.inputs.items():
            misfit = feature.misfit(arrays[name].shape)
            words = f"input {name!r} must have shape {feature.shape}, given {arrays[name].shape}. {misfit}"
            if misfit is not None and words not in told:
                found.append(f" In the request, {words}")
        return "".join(found)

    def show(self, outputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Converts outputs of the array signature to the answer for a client."""
        return self._named(apply_transforms(self.after, {name: np.asarray(value) for name, value in outputs.items()}))

    def _named(self, shown: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        for name in _CLASSES:
            if self.class_names and name in shown and np.issubdtype(shown[name].dtype, np.integer):
                shown[name] = np.asarray(self.class_names, object)[shown[name]]
        return shown


_ROWS = 2  # of the batch of zeros


def _zeros(feature: Feature) -> np.ndarray:
    sizes = [_ROWS if size is None else size for size in feature.shape]
    return np.zeros(sizes, getattr(ml_dtypes, feature.dtype, feature.dtype))


def _form(array: np.ndarray, own: Feature | None, batched: bool) -> Feature:
    """Returns the form of an output. One that only a transform returns has a row for each example."""
    rows = batched if own is None else own.shape[:1] == (None,)
    shape = (None, *array.shape[1:]) if rows and array.shape[:1] == (_ROWS,) else array.shape
    return Feature(shape, str(array.dtype))


def _array(name: str, value: object, feature: Feature) -> np.ndarray:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise ArgumentError(f"input {name!r} is not an array: {error} Lists must be nested evenly.") from error
    if feature.dtype != "string" and array.dtype.kind in "OSUT":
        for place, one in enumerate(array.reshape(-1).tolist()):
            if not _is_number(one, feature):
                row = f" in row {place * len(array) // array.size}" if array.ndim else ""
                raise ArgumentError(f"input {name!r} must be {feature.dtype}, given {one!r}{row}.")
    return array


def _is_number(value: object, feature: Feature) -> bool:
    """Returns whether a transform receives a value as a number. A missing float may be any object except text."""
    if "float" in feature.dtype:
        return not isinstance(value, (str, bytes))
    return isinstance(value, (Integral, np.bool_))
