"""The signatures of one mode: model_fn as pure functions of variables and named inputs, for any batch size."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import jax
from jax import export as jax_export

from estimator_core.errors import EstimatorError, ExportError
from estimator_core.export import Feature, ModelToExport, ServingInputReceiver, SignatureSpec
from estimator_core.modes import ModeKeys
from estimator_core.specs import EstimatorSpec
from estimator_signatures.beside_outputs import beside_outputs
from estimator_signatures.dead_code import without_dead_code
from estimator_signatures.outputs import signature_class_names, signature_methods, signature_outputs

_log = logging.getLogger("estimator_core")
#: The batch sizes for a model that cannot be traced with a symbolic size. The reader pads other sizes.
FIXED_BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64)
_BATCH = "b"
_PROBES = (2, 3)

Outputs = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class ModeSignatures:
    """The contribution of one mode to an export."""

    signatures: Mapping[str, SignatureSpec]
    prediction_transforms: tuple[Any, ...]
    fixed_batch_sizes: tuple[int, ...] | None


#: The signatures by the owner of a model. The functions stay the same objects in every export, so that formats need not
#: lower them again.
_KNOWN: WeakKeyDictionary[object, dict[Any, ModeSignatures]] = WeakKeyDictionary()


def mode_signatures(
    model: ModelToExport,
    mode: str,
    receiver: ServingInputReceiver,
    features: Mapping[Any, Feature],
    labels: Mapping[Any, Feature],
) -> ModeSignatures:
    """Returns the signatures of a mode.

    Args:
        model: the model. Of its variables, only the shapes are used.
        mode: the mode.
        receiver: the receiver of the requests.
        features: the features that model_fn receives, by its own keys.
        labels: the labels that model_fn receives.

    Raises:
        ExportError: an input cannot enter model_fn, or an output is not possible in a signature.
    """
    inputs = {str(name): feature for name, feature in {**features, **labels}.items()}
    for name, feature in inputs.items():
        if feature.dtype == "string":
            raise ExportError(
                f"Input {name!r} is a string, which cannot enter model_fn. Leave it out of the receiver if the model "
                "does not use it, or give the receiver (or the Estimator) host transforms that convert it to numbers."
            )
    everything = {**model.variables, **model.model_state}
    variables = {name: jax.ShapeDtypeStruct(value.shape, value.dtype) for name, value in everything.items()}
    known = _KNOWN.setdefault(model.owner, {})
    key = (
        model.placement,
        mode,
        receiver.bare,
        *(tuple(named.items()) for named in (inputs, variables, features, labels)),
    )
    if key not in known:
        known[key] = _traced(model, mode, receiver, features, labels, inputs, variables)
    return known[key]


def _traced(
    model: ModelToExport,
    mode: str,
    receiver: ServingInputReceiver,
    features: Mapping[Any, Feature],
    labels: Mapping[Any, Feature],
    inputs: Mapping[str, Feature],
    variables: Mapping[str, jax.ShapeDtypeStruct],
) -> ModeSignatures:
    function, measured, seen = _functions(model, mode, receiver, features, labels)

    def traced(named: Mapping[str, Feature], batch: object) -> Outputs:
        return jax.eval_shape(function, variables, _abstract(named, batch))

    outputs, fixed = _output_features(traced, inputs)
    functions = {name: _selected(function, name) for name in set(seen["same_as"].values())}
    specs = {
        name: SignatureSpec(
            name=name,
            method=seen["methods"][name],
            inputs=inputs,
            outputs=described,
            function=functions[seen["same_as"][name]],
            class_names=seen["class_names"].get(name),
            metrics=measured if seen["measures"] else None,
        )
        for name, described in outputs.items()
    }
    return ModeSignatures(signatures=specs, prediction_transforms=seen["transforms"], fixed_batch_sizes=fixed)


def _selected(function: Callable[..., Outputs], name: str) -> Callable[..., dict[str, Any]]:
    def selected(variables: Mapping[str, object], inputs: Mapping[str, object]) -> dict[str, Any]:
        return dict(function(variables, inputs)[name])

    return without_dead_code(selected)


def _first_equal(outputs: Outputs) -> dict[str, str]:
    """Returns for each signature the first one that returns the same array objects."""
    first: dict[tuple[Any, ...], str] = {}
    return {
        signature: first.setdefault(tuple((name, id(array)) for name, array in named.items()), signature)
        for signature, named in outputs.items()
    }


def _functions(
    model: ModelToExport,
    mode: str,
    receiver: ServingInputReceiver,
    features: Mapping[Any, Feature],
    labels: Mapping[Any, Feature],
) -> tuple[Callable[[Mapping[str, Any], Mapping[str, Any]], Outputs], Callable[..., Any], dict[str, Any]]:
    """Returns the function of outputs by signature, the function of metrics of outputs, and facts of the last trace."""
    serve = model.serve(mode)
    trainable = frozenset(model.variables)  # the functions outlive the values
    seen: dict[str, Any] = {}

    def spec_of(variables: Mapping[str, object], inputs: Mapping[str, object]) -> EstimatorSpec:
        own = {name: value for name, value in variables.items() if name in trainable}
        rest = {name: value for name, value in variables.items() if name not in trainable}
        given: Any = {name: inputs[str(name)] for name in features}
        wanted: Any = {name: inputs[str(name)] for name in labels} or None
        if receiver.bare:
            (given,) = given.values()
        if wanted is not None and getattr(receiver, "bare_labels", False):
            (wanted,) = wanted.values()
        return serve(own, rest, given, wanted)

    def function(variables: Mapping[str, object], inputs: Mapping[str, object]) -> Outputs:
        spec = spec_of(variables, inputs)
        seen.update(
            measures=mode != ModeKeys.PREDICT and bool(spec.eval_metric_ops),
            methods=signature_methods(spec),
            class_names=signature_class_names(spec),
            transforms=tuple(spec.prediction_transforms) if mode == ModeKeys.PREDICT else (),
        )
        outputs = signature_outputs(spec)
        seen["same_as"] = _first_equal(outputs)
        return outputs

    def both(
        variables: Mapping[str, object], inputs: Mapping[str, object]
    ) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        spec = spec_of(variables, inputs)
        return signature_outputs(spec)[mode], dict(spec.eval_metric_ops or {})

    def measured(variables: Mapping[str, object], inputs: Mapping[str, object], outputs: Mapping[str, object]) -> Any:
        return beside_outputs(both, (variables, inputs), outputs)

    return function, measured, seen


def _output_features(
    traced: Callable[[Mapping[str, Feature], Any], Outputs], inputs: Mapping[str, Feature]
) -> tuple[dict[str, dict[str, Feature]], tuple[int, ...] | None]:
    """Returns the outputs of a symbolic trace. If it fails, returns those of traces at two sizes, and the sizes to
    write.
    """
    if all(None not in feature.shape for feature in inputs.values()):
        return _described(traced(inputs, None), lambda size: False), None
    scope = jax_export.SymbolicScope([f"{_BATCH} >= 1"])
    (batch,) = jax_export.symbolic_shape(_BATCH, scope=scope)
    try:
        return _described(traced(inputs, batch), lambda size: size == batch), None
    except EstimatorError:
        raise
    except Exception as error:
        symbolic_error = error
    two, three = (traced(inputs, size) for size in _PROBES)
    _log.warning(
        "The model cannot be exported for any batch size: %s%s. It is exported for the sizes %s; other batches are "
        "padded or cut.",
        str(symbolic_error).partition("\n")[0],
        _users_line(symbolic_error),
        ", ".join(map(str, FIXED_BATCH_SIZES)),
    )
    merged = jax.tree.map(_merged, two, three)
    return _described(merged, lambda size: size is None), FIXED_BATCH_SIZES


def _merged(two: Any, three: Any) -> Any:
    """Merges the shapes of an output at two batch sizes. A size is None for the batch, an integer, or a text if it is
    neither.
    """
    sizes = zip(two.shape, three.shape, strict=True)
    shape = tuple(a if a == b else None if (a, b) == _PROBES else f"{a} or {b}" for a, b in sizes)
    return _Shape(shape, two.dtype)


@dataclass(frozen=True)
class _Shape:
    shape: tuple[Any, ...]
    dtype: Any


def _described(outputs: Outputs, is_batch: Callable[[Any], bool]) -> dict[str, dict[str, Feature]]:
    return {
        signature: {name: _feature(signature, name, leaf, is_batch) for name, leaf in named.items()}
        for signature, named in outputs.items()
    }


def _feature(signature: str, name: str, leaf: Any, is_batch: Callable[[Any], bool]) -> Feature:
    shape = tuple(None if index == 0 and is_batch(size) else size for index, size in enumerate(leaf.shape))
    if not all(size is None or isinstance(size, int) for size in shape):
        raise ExportError(
            f"Output {name!r} of signature {signature!r} has shape ({', '.join(map(str, leaf.shape))}): only the first "
            "size may "
            "depend on the batch, and only as the batch itself. Leave it out of export_outputs."
        )
    return Feature(shape, str(leaf.dtype))


def _abstract(inputs: Mapping[str, Feature], batch: object) -> dict[str, jax.ShapeDtypeStruct]:
    return {
        name: jax.ShapeDtypeStruct(tuple(batch if size is None else size for size in feature.shape), feature.dtype)
        for name, feature in inputs.items()
    }


def _users_line(error: BaseException) -> str:
    """Returns the innermost line of the traceback outside jax, flax, optax and the packages that export."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not any(
            f"/{package}/" in frame.filename
            for package in ("jax", "estimator_core", "estimator_signatures", "flax", "optax")
        )
    ]
    return f" ({frames[-1].filename}:{frames[-1].lineno}: {frames[-1].line})" if frames else ""
