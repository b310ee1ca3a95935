"""The contracts of exporters (when to export) and export formats (what is written)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from estimator_core._export.receivers import Feature
from estimator_core._metrics.base import Metric

#: The methods of signatures that clients call, with host transforms and class names applied.
SERVING_METHODS = ("predict", "classify", "regress")


@runtime_checkable
class Exporter(Protocol):
    """Decides after each evaluation whether to export.

    Source: the class `tf.estimator.Exporter`.
    """

    @property
    def name(self) -> str:
        """The name of the exporter's directory below `<model_dir>/export`."""
        ...

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> str | None:
        """Writes an export, or decides against it. Returns the path of the export, or None.

        It may be called twice for one step, the second time with `is_the_final_export`. An exporter that has already
        exported the step should do nothing in the second call.

        Args:
            estimator: the Estimator that has been evaluated.
            export_path: the directory of this exporter, `<model_dir>/export/<name>`.
            checkpoint_path: the checkpoint that has been evaluated.
            eval_result: the metrics by name, with "loss" and "global_step". Values may be NaN.
            is_the_final_export: whether training has ended.

        Raises:
            ExportError: the export cannot be written.
        """
        ...


@runtime_checkable
class KnowsEvaluation(Protocol):
    """An optional contract for an exporter that needs the name of its evaluation."""

    def used_in(self, eval_name: str | None) -> None:
        """Called once, before training."""
        ...


@runtime_checkable
class ExportsInBackground(Protocol):
    """An optional contract for an exporter whose `export` may return before the export is complete."""

    def wait(self) -> str | None:
        """Waits for the export in progress, if there is one, and returns its path. Raises its error."""
        ...


@runtime_checkable
class RehearsesExports(Protocol):
    """An optional contract for an exporter that can check its exports before training."""

    def rehearse(self, check: Callable[..., None]) -> None:
        """Calls `check` once per export, with the arguments of `Estimator.export_saved_model` except the directory."""
        ...


@dataclass(frozen=True, kw_only=True)
class SignatureSpec:
    """One function of an export.

    Attributes:
        name: the name of the signature.
        method: "predict", "classify", "regress", "eval" or "train".
        inputs: the inputs, by name.
        outputs: the outputs, by name.
        function: `(variables, inputs) -> outputs`: pure and traceable. All three are dicts by name.
        class_names: the names of the class ids in the outputs "classes" and "all_classes". A raw signature returns the
            names instead of the ids.
        metrics: `(variables, inputs, outputs) -> metrics by name`, traceable: the metrics of a batch with these
            outputs. None if the mode has no metrics.
    """

    name: str
    method: str
    inputs: Mapping[str, Feature]
    outputs: Mapping[str, Feature]
    function: Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]
    class_names: tuple[str, ...] | None = None
    metrics: Callable[[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]], Mapping[str, Metric]] | None = None


@dataclass(frozen=True, kw_only=True)
class ExportRequest:
    """Everything that a format writes.

    Attributes:
        signatures: the signatures by name.
        variables: all variables by path. They are arguments of the functions, never constants.
        assets: paths of files to add, by their name in the export.
        input_transforms: `HostTransform`s from a raw request to the inputs. Empty if clients send arrays.
        output_transforms: `HostTransform`s from the outputs to the answer that clients receive.
        receiver: the contents of a raw request, by name. Without input transforms, the inputs of the model.
        fixed_batch_sizes: the batch sizes to write, for a model that cannot be traced with a symbolic batch size. None:
            any size.
        global_step: the global step of the state.
        provenance: JSON for the manifest: versions, plugins, checkpoint.
    """

    signatures: Mapping[str, SignatureSpec]
    variables: Mapping[str, np.ndarray]
    assets: Mapping[str, Path] = field(default_factory=dict[str, Path])
    input_transforms: Sequence[Any] = ()
    output_transforms: Sequence[Any] = ()
    receiver: Mapping[str, Feature] = field(default_factory=dict[str, Feature])
    fixed_batch_sizes: tuple[int, ...] | None = None
    global_step: int = 0
    provenance: Mapping[str, Any] = field(default_factory=dict[str, Any])


class LoadedSignature(Protocol):
    """A function of a loaded export. It accepts arrays by name and returns numpy arrays by name."""

    @property
    def inputs(self) -> Mapping[str, Feature]:
        """The inputs, by name."""
        ...

    @property
    def outputs(self) -> Mapping[str, Feature]:
        """The outputs, by name."""
        ...

    def __call__(self, /, **arrays: Any) -> dict[str, np.ndarray]:
        """Returns the outputs for one batch."""
        ...


class LoadedExport(Protocol):
    """An export that was read back.

    `signatures` accept and return arrays of numbers, so they load anywhere. `raw_signatures` accept client requests and
    return client answers. Host transforms run before and after, so their packages must be installed. Without
    transforms, both are the same.
    """

    @property
    def signatures(self) -> Mapping[str, LoadedSignature]:
        """Array signatures by name."""
        ...

    @property
    def raw_signatures(self) -> Mapping[str, LoadedSignature]:
        """Raw signatures by name."""
        ...

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The manifest of the export."""
        ...


@runtime_checkable
class HoldsHostPart(Protocol):
    """An optional contract for a `LoadedExport` whose file contains the host transforms.

    The core compares its signatures with the transforms before it publishes an export.
    """

    @property
    def own_signatures(self) -> Mapping[str, LoadedSignature]:
        """The signatures of the file as clients call them, with the names of raw signatures."""
        ...


@runtime_checkable
class ExportCheck(Protocol):
    """Compares an output of an export with the output of the estimator.

    It is a plugin component of kind "export_check".
    """

    def difference(self, expected: np.ndarray, found: np.ndarray) -> str | None:
        """Returns the fault of an output, as the end of a sentence that begins with the name of the output; None if it
        is accepted.

        Args:
            expected: the output of the estimator for random inputs.
            found: the output of the loaded export for the same inputs, of any shape and dtype.
        """
        ...


@runtime_checkable
class ExportFormat(Protocol):
    """Defines how an export is stored on disk. It is a plugin component of kind "format".

    Only the core calls `write`, once per export. Before the core publishes the directory, it reads the export with
    `load` and compares the outputs. A format does not need to check its own result.
    """

    @property
    def name(self) -> str:
        """The name that users pass to `export_saved_model(format=...)`."""
        ...

    def write(self, request: ExportRequest, directory: Path) -> None:
        """Writes an export into an empty directory.

        The core publishes the directory after it has read and checked the export.

        Args:
            request: the signatures, the variables and everything else in the export.
            directory: the empty directory.

        Raises:
            ExportError: the format cannot represent the request.
        """
        ...

    def load(self, directory: Path) -> LoadedExport:
        """Reads an export back from the `directory` that holds it.

        Raises:
            ExportError: the export is damaged or has another format.
        """
        ...

    def recognizes(self, directory: Path) -> bool:
        """Returns whether a directory contains an export of this format. Only file names are examined."""
        ...


@runtime_checkable
class ChecksRequest(Protocol):
    """An optional contract for an `ExportFormat` that can refuse a request before it writes."""

    def check(self, request: ExportRequest) -> None:
        """Refuses a request that the format or its readers cannot represent. Writes nothing.

        Raises:
            ExportError: the format cannot represent the request. The message names the signature, transform or
                operation, and the remedy.
        """
        ...
