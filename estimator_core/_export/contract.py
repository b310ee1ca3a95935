"""The contracts of exporters (when to export) and export formats (what is written)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from estimator_core._export.receivers import Feature
from estimator_core._metrics.base import Metric

#: Signatures that clients call: host transforms and class names surround them.
SERVING_METHODS = ("predict", "classify", "regress")


@runtime_checkable
class Exporter(Protocol):
    """Decides after each evaluation whether to export.

    Source: the class `tf.estimator.Exporter`.
    """

    @property
    def name(self) -> str:
        """The directory below `<model_dir>/export`."""
        ...

    def export(
        self,
        estimator: Any,
        export_path: str,
        checkpoint_path: str,
        eval_result: Mapping[str, Any],
        is_the_final_export: bool,
    ) -> str | None:
        """Exports or decides not to. Returns the path that was written, or None.

        It may be called twice for one step, the second time with `is_the_final_export`. An exporter that has exported
        the step skips the second call.

        Args:
            estimator: the Estimator that has been evaluated.
            export_path: the directory of this exporter, `<model_dir>/export/<name>`.
            checkpoint_path: the checkpoint that has been evaluated.
            eval_result: metrics by name, with "loss" and "global_step"; values may be NaN.
            is_the_final_export: whether training has ended.

        Raises:
            ExportError: the export cannot be written.
        """
        ...


@runtime_checkable
class KnowsEvaluation(Protocol):
    """An exporter that is told the name of the evaluation it is used in; optional."""

    def used_in(self, eval_name: str | None) -> None:
        """Called once, before training."""
        ...


@runtime_checkable
class ExportsInBackground(Protocol):
    """An exporter whose `export` may return before the export is complete; optional."""

    def wait(self) -> str | None:
        """Waits, raises any error, and returns the path of the export that was being written, if there was one."""
        ...


@runtime_checkable
class RehearsesExports(Protocol):
    """An exporter that says before training what it will export; optional."""

    def rehearse(self, check: Callable[..., None]) -> None:
        """Calls `check` with the arguments of `Estimator.export_saved_model` but the directory, for each export."""
        ...


@dataclass(frozen=True, kw_only=True)
class SignatureSpec:
    """One function of an export.

    Attributes:
        name: the name of the signature.
        method: "predict", "classify", "regress", "eval" or "train".
        inputs: what it takes, by name.
        outputs: what it returns, by name.
        function: `(variables, inputs) -> outputs`, pure and traceable; variables and both dicts by name.
        class_names: the names of the class ids in the outputs "classes" and "all_classes"; a raw signature returns
            them instead of the ids.
        metrics: `(variables, inputs, outputs) -> metrics by name`: what an evaluation of a batch would measure if
            these were the outputs; traceable. None if the mode measures nothing.
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
    """Everything a format writes.

    Attributes:
        signatures: the signatures by name.
        variables: all variables by path; arguments of the functions, never constants.
        assets: files to add: name in the export to path.
        input_transforms: `HostTransform`s from a raw request to the inputs; empty if clients send arrays.
        output_transforms: `HostTransform`s from outputs to what clients see.
        receiver: what a raw request carries, by name; without input transforms, the inputs of the model.
        fixed_batch_sizes: the batch sizes to write, for a model that cannot be traced with a symbolic one; None: any.
        global_step: the step of the state.
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
    """A function of a loaded export: arrays by name in, numpy arrays by name out."""

    @property
    def inputs(self) -> Mapping[str, Feature]:
        """What it takes, by name."""
        ...

    @property
    def outputs(self) -> Mapping[str, Feature]:
        """What it returns, by name."""
        ...

    def __call__(self, /, **arrays: Any) -> dict[str, np.ndarray]:
        """The outputs for one batch."""
        ...


class LoadedExport(Protocol):
    """An export that was read back.

    `signatures` take and return arrays of numbers, so they load anywhere. `raw_signatures` take what clients send and
    return what clients see: host transforms run before and after, so their packages must be installed. Without
    transforms both are the same.
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
        """What the export says about itself."""
        ...


@runtime_checkable
class HoldsHostPart(Protocol):
    """A `LoadedExport` whose file does the work of host transforms itself; optional.

    The core compares its signatures with the transforms before it publishes an export.
    """

    @property
    def own_signatures(self) -> Mapping[str, LoadedSignature]:
        """What the file takes from clients and returns to them, by signature, with the names of raw signatures."""
        ...


@runtime_checkable
class ExportCheck(Protocol):
    """Compares an output of an export with the estimator's; a plugin component of kind "export_check"."""

    def difference(self, expected: np.ndarray, found: np.ndarray) -> str | None:
        """What is wrong with an output, as the end of a sentence that begins with its name; None if it is accepted.

        Args:
            expected: what the estimator returns for random inputs.
            found: what the export that was read back returns for them, of any shape and dtype.
        """
        ...


@runtime_checkable
class ExportFormat(Protocol):
    """How an export is stored on disk; a plugin component of kind "format".

    Only the core calls `write`, once per export. Before it publishes the directory, it reads it back with `load` and
    compares the outputs, so a format need not check its own work.
    """

    @property
    def name(self) -> str:
        """The name users give in `export_saved_model(format=...)`."""
        ...

    def write(self, request: ExportRequest, directory: Path) -> None:
        """Writes an export into an empty directory, which gets its name once it has been read back and checked.

        Args:
            request: signatures, variables and what else belongs to the export.
            directory: where.

        Raises:
            ExportError: the format cannot hold the request.
        """
        ...

    def load(self, directory: Path) -> LoadedExport:
        """Reads an export back from the `directory` that holds it.

        Raises:
            ExportError: it is damaged, or not of this format.
        """
        ...

    def recognizes(self, directory: Path) -> bool:
        """Whether a directory holds an export of this format; looks at file names only."""
        ...


@runtime_checkable
class ChecksRequest(Protocol):
    """An `ExportFormat` that knows what it cannot hold before it writes; optional."""

    def check(self, request: ExportRequest) -> None:
        """Refuses what the format or its readers cannot hold; writes nothing.

        Raises:
            ExportError: the format cannot hold it. The message names the signature, transform or operation, and the
                remedy.
        """
        ...
