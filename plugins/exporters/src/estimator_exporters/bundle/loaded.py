"""A loaded export of any format: array signatures that check their arguments, and raw signatures that call them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from estimator_core.errors import ArgumentError, EstimatorError, ExportError
from estimator_core.export import SERVING_METHODS, Feature, LoadedSignature, RawSignature
from estimator_core.inputs import INDEX, load_transforms
from estimator_core.plugins import default_plugins
from estimator_exporters.bundle.write import AFTER, BEFORE

_NARROWED = (
    ", in which the program computes. Map the ids to a smaller range (a vocabulary, a hash), or export again with "
    "jax_enable_x64."
)


@dataclass(frozen=True, kw_only=True)
class Signature:
    """An array signature: `signature(**arrays)` returns numpy arrays by name.

    Args:
        name: the name of the signature.
        method: "predict", "classify", "regress", or a mode.
        inputs: the features of the inputs, by name.
        outputs: the features of the outputs, by name.
        run: the function `checked arrays -> arrays`.
        computed: the dtypes in which the program computes inputs, by name, if they are narrower than the dtypes of the
            inputs.
    """

    name: str
    method: str
    inputs: Mapping[str, Feature]
    outputs: Mapping[str, Feature]
    run: Callable[[dict[str, np.ndarray]], Mapping[str, Any]]
    computed: Mapping[str, str] = field(default_factory=dict[str, str])

    def __call__(self, /, **arrays: Any) -> dict[str, np.ndarray]:
        """Runs the function on one batch.

        Raises:
            ArgumentError: inputs are missing, unknown, of the wrong shape or dtype, or out of the range of the program.
        """
        return {name: np.asarray(value) for name, value in self.run(self.checked(arrays)).items()}

    def checked(self, arrays: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Returns the inputs as arrays of the right dtype.

        Raises:
            ArgumentError: the same conditions as in a call.
        """
        missing, unknown = sorted(self.inputs.keys() - arrays.keys()), sorted(arrays.keys() - self.inputs.keys())
        if missing or unknown:
            raise ArgumentError(
                f"signature {self.name!r}: missing inputs {missing}, unknown inputs {unknown}. It takes "
                f"{self._takes()}."
            )
        fitted = {name: self._fit(name, feature, arrays[name]) for name, feature in self.inputs.items()}
        sizes = {name: len(fitted[name]) for name, feature in self.inputs.items() if feature.shape[:1] == (None,)}
        if len(set(sizes.values())) > 1:
            raise ArgumentError(f"signature {self.name!r}: inputs differ in their batch sizes: {sizes}.")
        return fitted

    def _fit(self, name: str, feature: Feature, value: Any) -> np.ndarray:
        where = f"signature {self.name!r}: input {name!r}"
        try:
            array = np.asarray(value)
        except ValueError as error:
            raise ArgumentError(f"{where} is not an array: {error} Lists must be nested evenly.") from error
        misfit = feature.misfit(array.shape)
        if misfit is not None:
            raise ArgumentError(f"{where} must have shape {feature.shape}, given {array.shape}. {misfit}")
        wanted, computed = numpy_dtype(feature.dtype), self.computed.get(name, feature.dtype)
        excess = out_of_range(array, numpy_dtype(computed))
        if excess is not None:
            raise ArgumentError(f"{where} {excess}{'.' if computed == feature.dtype else _NARROWED}")
        if array.dtype == wanted:
            return array
        if not casts(array, wanted):
            raise ArgumentError(f"{where} must be {feature.dtype}, given {array.dtype}.")
        return array.astype(wanted)

    def _takes(self) -> str:
        return ", ".join(f"{name} {feature.dtype}{feature.shape}" for name, feature in self.inputs.items())


@dataclass(frozen=True, kw_only=True)
class Loaded:
    """An export that was loaded.

    Args:
        directory: the directory of the export.
        manifest: the verified manifest.
        signatures: the array signatures by name.
    """

    directory: Path
    manifest: Mapping[str, Any]
    signatures: Mapping[str, Signature]

    @property
    def raw_signatures(self) -> Mapping[str, LoadedSignature]:
        """Returns the signatures that clients call: array signatures with host transforms and class names.

        Raises:
            ExportError: the package of a transform is not installed. The message names it.
        """
        before, after = self._transforms(BEFORE), self._transforms(AFTER)
        receiver = features(self.manifest["receiver"])
        raw: dict[str, LoadedSignature] = {}
        for name, signature in self.signatures.items():
            class_names = self.manifest["signatures"][name]["class_names"]
            serves = signature.method in SERVING_METHODS
            if not serves or not (before or after or class_names):
                raw[name] = signature
                continue
            raw[name] = RawSignature(
                signature=signature,
                inputs=receiver if before else signature.inputs,
                before=before,
                after=after,
                class_names=class_names,
            )
        return raw

    def _transforms(self, folder: str) -> tuple[Any, ...]:
        if f"{folder}/{INDEX}" not in self.manifest["files"]:
            return ()
        plugins = default_plugins()
        try:
            return tuple(load_transforms(self.directory / folder, lambda name: plugins.get("transform", name)))
        except ExportError:
            raise
        except (EstimatorError, KeyError, TypeError) as error:
            made_with = ", ".join(
                f"{one['distribution']} {one['version']}" for one in self.manifest["provenance"].get("plugins", [])
            )
            raise ExportError(
                f"The raw signatures of {self.directory} need a host transform that cannot be loaded: {error} "
                f"The export was made with {made_with}. Its array signatures work without it."
            ) from error


def features(named: Mapping[str, Any]) -> dict[str, Feature]:
    """Returns the features in the JSON of a manifest."""
    return {name: Feature(tuple(value["shape"]), value["dtype"]) for name, value in named.items()}


def computed_of(described: Mapping[str, Any]) -> dict[str, str]:
    """Returns the dtypes in which the program of a signature computes inputs, for the inputs that it narrows.

    Args:
        described: the signature in a manifest. Older manifests lack these dtypes, and then no value is refused.
    """
    return dict(described.get("computed", {}))


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Returns the numpy dtype for the dtype of a Feature, also for bfloat16 and float8 types. Strings are objects."""
    if name == "string":
        return np.dtype(object)
    try:
        return np.dtype(name)
    except TypeError:
        return np.dtype(getattr(ml_dtypes, name))


def out_of_range(array: np.ndarray, dtype: np.dtype[Any]) -> str | None:
    """Describes the first number that is out of the range of a dtype. Returns None if all numbers fit.

    Example:
        >>> out_of_range(np.array([1, 300]), np.dtype(np.uint8))
        'holds 300, outside the range of uint8 (0 to 255)'
        >>> out_of_range(np.array([1e39]), np.dtype(np.float32))
        'holds 1e+39, which is infinite as float32'
    """
    if array.dtype == dtype or array.dtype.kind not in "iuf" or not array.size:
        return None
    if dtype.kind == "f":
        return _infinite(array, dtype)
    if array.dtype.kind == "f" or dtype.kind not in "iu":
        return None
    limits = np.iinfo(dtype)
    if int(array.min()) >= limits.min and int(array.max()) <= limits.max:
        return None
    wrong = array[(array < limits.min) | (array > limits.max)]
    return f"holds {wrong.flat[0]}, outside the range of {dtype} ({limits.min} to {limits.max})"


def _infinite(array: np.ndarray, dtype: np.dtype[Any]) -> str | None:
    if np.can_cast(array.dtype, dtype):
        return None
    with np.errstate(over="ignore"):
        wrong = array[np.isfinite(array) & ~np.isfinite(array.astype(dtype))]
    return f"holds {wrong.flat[0]}, which is infinite as {dtype}" if wrong.size else None


def casts(array: np.ndarray, wanted: np.dtype[Any]) -> bool:
    """Returns whether a cast keeps the values, except for the rounding of floats. Integers must be within the range."""
    if array.dtype.kind in "iu" and wanted.kind in "iu":
        return True
    if wanted.kind == "V" or array.dtype.kind == "V":  # numpy treats bfloat16 and float8 types as kind V
        return array.dtype.kind in "fiuV" and wanted.kind in "fV"
    return np.can_cast(array.dtype, wanted, "same_kind")
