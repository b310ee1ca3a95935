"""One version of a model: a signature of a loaded export with a batcher."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from estimator_core.errors import ArgumentError, ExportError
from estimator_core.export import Feature, LoadedExport, LoadedSignature, RawSignature
from estimator_exporters.bundle.loaded import Signature, numpy_dtype
from estimator_exporters.serving.batching import BATCH_SIZES, Batcher, Observe, Run, unobserved
from estimator_exporters.serving.datatypes import datatype, encoded, has_datatype
from estimator_exporters.serving.refusals import BadRequestError
from estimator_exporters.serving.request_log import Record, Recorder, unrecorded
from estimator_exporters.serving.statistics import Statistics

_log = logging.getLogger("estimator_exporters")


class ServedModel:
    """A signature that serves many concurrent requests.

    Args:
        signature: the signature that clients call.
        batch_sizes: the batch sizes of its runs.
        observe: called after each run.
        record: called with the arrays of each request that matches the inputs.
    """

    def __init__(
        self,
        signature: LoadedSignature,
        batch_sizes: Sequence[int] = BATCH_SIZES,
        observe: Observe = unobserved,
        record: Record = lambda arrays: None,
    ) -> None:
        self.inputs: Mapping[str, Feature] = signature.inputs
        self.outputs: Mapping[str, Feature] = signature.outputs
        self._wanted = {name: (datatype(one.dtype), one.shape) for name, one in signature.inputs.items()}
        raw = signature if isinstance(signature, RawSignature) else None
        self._array: Any = signature if raw is None else raw.signature
        self._raw = raw
        self._signature = signature
        self.batches = bool(self._array.inputs) and all(
            feature.shape[:1] == (None,) for feature in self._array.inputs.values()
        )
        batched = [name for name, feature in self._array.outputs.items() if feature.shape[:1] == (None,)]
        self.statistics = Statistics()
        self.method: str = self._array.method
        self.max_batch = max(batch_sizes)
        self._observe = _both(observe, self.statistics.ran)
        self._record = record
        self._batcher = Batcher(lambda arrays: self._array(**arrays), batch_sizes, batched, self._observe)

    def warm_up(self) -> None:
        """Compiles every batch size."""
        if self.batches:
            self._batcher.warm_up(lambda size: _zeros(self._array.inputs, size))
        else:
            self._array(**_zeros(self._array.inputs, 1))

    async def infer(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns the outputs for one request.

        Raises:
            BadRequestError: inputs are missing, unknown, of another shape or datatype, or out of the program's range.
        """
        self._check(arrays)
        if isinstance(self._signature, Signature):
            _checked(self._signature, arrays)  # alone, because in a batch it would fail the other requests too
        self._record(arrays)
        prepared = arrays if self._raw is None else await self._prepared(self._raw, arrays)
        outputs = await (self._batcher(prepared) if self.batches else asyncio.to_thread(self._alone, prepared))
        return outputs if self._raw is None else await asyncio.to_thread(self._raw.show, outputs)

    def _alone(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        began = time.perf_counter_ns()
        outputs = self._array(**arrays)
        self._observe(Run(1, 1, 1, 0, time.perf_counter_ns() - began))
        return outputs

    async def close(self) -> None:
        """Finishes the waiting requests."""
        await self._batcher.close()

    async def _prepared(self, raw: RawSignature, arrays: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        def prepare() -> Mapping[str, np.ndarray]:
            text = {name: _text(one) if self.inputs[name].dtype == "string" else one for name, one in arrays.items()}
            return self._array.checked(raw.prepare(text))

        try:
            return await asyncio.to_thread(prepare)
        except ArgumentError as error:
            raise BadRequestError(str(error)) from error

    def _check(self, arrays: Mapping[str, np.ndarray]) -> None:
        if arrays.keys() != self.inputs.keys():
            missing, unknown = sorted(self.inputs.keys() - arrays.keys()), sorted(arrays.keys() - self.inputs.keys())
            raise BadRequestError(
                f"missing inputs {missing}, unknown inputs {unknown}; the inputs are {sorted(self.inputs)}. "
                "Send each of them, and no others."
            )
        rows: int | None = None
        for name, (wanted, shape) in self._wanted.items():
            array = arrays[name]
            if datatype(array.dtype) != wanted:
                raise BadRequestError(f"input {name!r} must be {wanted}, given {datatype(array.dtype)}")
            batched, given = shape[:1] == (None,), array.shape
            if (misfit := self.inputs[name].misfit(given)) is not None:
                wanted_shape = [-1 if size is None else size for size in shape]
                raise BadRequestError(f"input {name!r} must have shape {wanted_shape}, given {list(given)}. {misfit}")
            if batched and given[0] != (rows := given[0] if rows is None else rows):
                sizes = {key: value.shape[0] for key, value in arrays.items() if self._wanted[key][1][:1] == (None,)}
                raise BadRequestError(f"the inputs differ in their batch sizes: {sizes}")


def served_models(
    name: str,
    export: LoadedExport,
    batch_sizes: Sequence[int],
    observe: Callable[[str], Observe],
    recorder: Recorder = unrecorded,
) -> dict[str, ServedModel]:
    """Returns the models of an export: its default signature as `name`, and every other one as `name:signature`.

    A signature with a dtype that the protocol lacks is logged and skipped.

    Raises:
        ExportError: no signature is left.
    """
    found: dict[str, ServedModel] = {}
    for key, signature in export.raw_signatures.items():
        own = name if key == "serving_default" else f"{name}:{key}"
        foreign = _foreign(signature)
        if foreign:
            _log.error("%s is not served: the protocol does not support the dtype of its %s", own, ", ".join(foreign))
            continue
        found[own] = ServedModel(signature, batch_sizes, observe(own), recorder(own, signature.inputs))
    if not found:
        raise ExportError(
            "it has no signature that can be served. Export complex numbers in two parts, float8 as float32."
        )
    return found


def _foreign(signature: LoadedSignature) -> list[str]:
    """Returns the inputs and outputs whose dtypes the protocol lacks, with these dtypes."""
    sides = {"input": signature.inputs, "output": signature.outputs}
    return [
        f"{side} {name!r}, {feature.dtype}"
        for side, features in sides.items()
        for name, feature in features.items()
        if not has_datatype(feature.dtype)
    ]


def _both(first: Observe, second: Observe) -> Observe:
    def observe(run: Run) -> None:
        first(run)
        second(run)

    return observe


def _checked(signature: Signature, arrays: Mapping[str, np.ndarray]) -> None:
    try:
        signature.checked(arrays)
    except ArgumentError as error:
        raise BadRequestError(str(error)) from error


def _zeros(features: Mapping[str, Feature], batch: int) -> dict[str, np.ndarray]:
    return {
        name: np.zeros([batch if size is None else size for size in feature.shape], numpy_dtype(feature.dtype))
        for name, feature in features.items()
    }


def _text(array: np.ndarray) -> np.ndarray:
    """Returns UTF-8 bytes as strings, because host transforms read text. Other bytes (tf.Example) are unchanged."""
    items = [encoded(item) for item in array.reshape(-1).tolist()]
    found = np.empty(len(items), object)
    try:
        found[:] = [item.decode() for item in items]
    except UnicodeDecodeError:
        found[:] = items
    return found.reshape(array.shape)
