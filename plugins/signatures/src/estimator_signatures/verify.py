"""Checks that a written export returns the same values as the Estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from estimator_core.errors import ExportError
from estimator_core.export import (
    SERVING_METHODS,
    ExportCheck,
    ExportRequest,
    Feature,
    HoldsHostPart,
    LoadedExport,
    LoadedSignature,
    SignatureSpec,
    host_programs,
)
from estimator_signatures.client_samples import client_samples
from estimator_signatures.raw_signature import RawSignature

_BATCH = 3


def verify(request: ExportRequest, loaded: LoadedExport, check: ExportCheck) -> None:
    """Compares every signature of a loaded export with its original function, on random inputs.

    Args:
        request: the request for the export.
        loaded: the export that was read back.
        check: the comparison for each output.

    Raises:
        ExportError: a signature or an output is missing or cannot be computed, or `check` finds a difference. The
            message names it.
    """
    generator = np.random.default_rng(0)
    variables = {key: jnp.asarray(value) for key, value in request.variables.items()}
    _verify_arrays(request, loaded, check, variables, generator)
    if isinstance(loaded, HoldsHostPart):
        _verify_host_part(request, loaded, check, variables, generator)


def _verify_arrays(
    request: ExportRequest,
    loaded: LoadedExport,
    check: ExportCheck,
    variables: Mapping[str, object],
    generator: np.random.Generator,
) -> None:
    checked: set[Callable[..., Any]] = set()
    for name, signature in request.signatures.items():
        where = f"signature {name!r}"
        if name not in loaded.signatures:
            raise ExportError(f"{_FAILS}: {where} is missing; the export has {sorted(loaded.signatures)}.")
        if signature.function in checked:
            continue
        checked.add(signature.function)
        rows = _rows(request, signature)
        inputs = {key: _sample(feature, rows, generator) for key, feature in signature.inputs.items()}
        expected: Mapping[str, Any] = jax.device_get(jax.jit(signature.function)(variables, inputs))
        found = _outputs(loaded.signatures[name], inputs, where)
        _compare(expected, found, check, where)
        if signature.metrics is not None:
            measure = jax.jit(signature.metrics)
            measured, wanted = (
                {f"metrics/{key}": metric.compute() for key, metric in measure(variables, inputs, given).items()}
                for given in (_named_as(expected, found), expected)
            )
            _compare(wanted, measured, check, where)


def _named_as(expected: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the found outputs as jax arrays with the dtypes of the expected ones."""
    return {key: jnp.asarray(found[key], value.dtype) for key, value in expected.items()}


def _verify_host_part(
    request: ExportRequest,
    loaded: HoldsHostPart,
    check: ExportCheck,
    variables: Mapping[str, object],
    generator: np.random.Generator,
) -> None:
    """Compares the results of an export for requests with the results of the host transforms."""
    programs = host_programs(request.input_transforms, request.receiver)
    for signature in (one for one in request.signatures.values() if one.method in SERVING_METHODS):
        where = f"signature {signature.name!r} with its host part"
        if signature.name not in loaded.own_signatures:
            raise ExportError(f"{_FAILS}: {where} is missing; the export has {sorted(loaded.own_signatures)}.")
        received = request.receiver if request.input_transforms else signature.inputs
        raw = RawSignature(
            signature=_Traced(signature=signature, variables=variables),
            inputs=received,
            before=request.input_transforms,
            after=request.output_transforms,
            class_names=signature.class_names,
        )
        batch = client_samples(programs, received, _rows(request, signature), generator)
        _compare(raw(**batch), _outputs(loaded.own_signatures[signature.name], batch, where), check, where)


@dataclass(frozen=True, kw_only=True)
class _Traced:
    """The function of a signature, in the form of a loaded signature."""

    signature: SignatureSpec
    variables: Mapping[str, Any]

    @property
    def inputs(self) -> Mapping[str, Feature]:
        return self.signature.inputs

    @property
    def outputs(self) -> Mapping[str, Feature]:
        return self.signature.outputs

    def __call__(self, /, **arrays: object) -> dict[str, np.ndarray]:
        return jax.device_get(jax.jit(self.signature.function)(self.variables, arrays))


def _rows(request: ExportRequest, signature: SignatureSpec) -> int:
    """Returns the number of rows of a batch. Outputs without a batch axis would change if a reader added rows."""
    whole = all(feature.shape[:1] == (None,) for feature in signature.outputs.values())
    if request.fixed_batch_sizes is None or whole:
        return _BATCH
    return max(size for size in request.fixed_batch_sizes if size <= _BATCH)


def _compare(expected: Mapping[str, object], found: Mapping[str, object], check: ExportCheck, where: str) -> None:
    for key, value in expected.items():
        if key not in found:
            raise ExportError(f"{_FAILS}: {where}, output {key!r} is missing; the export has {sorted(found)}.")
        wanted, given = np.asarray(value), np.asarray(found[key])
        if wanted.dtype.kind in "OSU":
            difference = None if wanted.tolist() == given.tolist() else f"is {given.tolist()}, not {wanted.tolist()}."
        else:
            difference = _differs(check, wanted, given)
        if difference is not None:
            raise ExportError(f"{_FAILS}: {where}, output {key!r} {difference}")


def _differs(check: ExportCheck, wanted: np.ndarray, given: np.ndarray) -> str | None:
    """Returns the answer of the check, which is the end of a sentence, or None."""
    try:
        answer: object = check.difference(wanted, given)
    except Exception as error:
        error.add_note(f"in the export check {type(check).__qualname__}, difference")
        raise
    if answer is None or (isinstance(answer, str) and answer.strip()):
        return answer
    raise ExportError(
        f"{_FAILS}: the export check {type(check).__qualname__} returned {answer!r} from difference(); it must return "
        "the fault in words, or None."
    )


def _outputs(signature: LoadedSignature, inputs: Mapping[str, object], where: str) -> Mapping[str, Any]:
    try:
        return signature(**inputs)
    except Exception as error:
        raise ExportError(f"{_FAILS}: {where} cannot be called: {type(error).__name__}: {error}") from error


def _sample(feature: Feature, rows: int, generator: np.random.Generator) -> Any:
    shape = tuple(rows if size is None else size for size in feature.shape)
    dtype = jnp.dtype(feature.dtype)
    if jnp.issubdtype(dtype, jnp.floating):
        return generator.normal(size=shape).astype(dtype)
    return generator.integers(0, 2, size=shape).astype(dtype)


_FAILS = "The export does not reproduce the estimator"
