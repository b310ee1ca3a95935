"""The common part of all exporters: they check arguments, write once per step, and delete superfluous exports."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from estimator_core.errors import ArgumentError, ArgumentTypeError, ExportError, is_integer
from estimator_core.export import FitsTraining, ServingInputReceiver, collect_garbage, latest_export
from estimator_core.inputs import INDEX
from estimator_exporters.bundle.manifest import checksum
from estimator_exporters.bundle.write import BEFORE, described
from estimator_signatures import client_transforms

_log = logging.getLogger("estimator_exporters")


class _Pending(Protocol):
    def wait(self) -> str: ...


class SavedModelWriter:
    """Writes exports of an estimator for one exporter.

    Args:
        name: the name of the exporter and of its directory under `<model_dir>/export`.
        serving_input_receiver_fn: returns the receiver, which describes the features of a request.
        assets_extra: files to add to each export.
        exports_to_keep: the number of newest exports to keep. None keeps all.
        format: the name of an export format.
        background: whether to write in a separate thread. The call then returns at once, and `wait` returns the path.
    """

    def __init__(
        self,
        name: str,
        serving_input_receiver_fn: Callable[[], Any] | None,
        assets_extra: Mapping[str, str] | None = None,
        exports_to_keep: int | None = None,
        format: str = "stablehlo",
        background: bool = False,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise ArgumentError(f"An Exporter cannot have a name that is `None` or empty. Given: {name!r}.")
        if not callable(serving_input_receiver_fn):
            raise ArgumentTypeError(
                f"Exporter {name!r}: serving_input_receiver_fn must be a function, given: "
                f"{serving_input_receiver_fn!r}."
            )
        if exports_to_keep is not None and (not is_integer(exports_to_keep) or exports_to_keep <= 0):
            raise ArgumentError(f"`exports_to_keep`, if provided, must be a positive number. Got {exports_to_keep}.")
        self.name = name
        self._receiver_fn = serving_input_receiver_fn
        self._assets_extra = dict(assets_extra or {})
        self._keep = exports_to_keep
        self._format = format
        self._background = background
        self._pending: tuple[_Pending, Callable[[str], None]] | None = None
        #: The newest export: its directory, its checkpoint, and the write times of the checkpoint and of each asset.
        self._written: tuple[Any, ...] | None = None

    def write(
        self, estimator: Any, export_path: str, checkpoint_path: str, done: Callable[[str], None] | None = None
    ) -> str | None:
        """Exports the evaluated state and returns the path, or None if this exporter has already exported it.

        In the background, the path is that of the previous export, which is complete by then.

        A killed process may have written an export without recording it. The path is then that of its export.

        Args:
            estimator: the Estimator to export.
            export_path: the directory of this exporter.
            checkpoint_path: the checkpoint of the evaluated state.
            done: called with the path when the export is complete.
        """
        assets = (_written_at(Path(os.path.expanduser(path))) for path in self._assets_extra.values())
        asked = export_path, checkpoint_path, _written_at(Path(checkpoint_path, "manifest.json")), *assets
        if self._written == asked:
            return None
        finished = self.wait()  # one at a time: an export waits for the previous one, which blocks training
        arguments = {"assets_extra": self._assets_extra, "checkpoint_path": checkpoint_path, "format": self._format}

        def finish(path: str) -> None:
            if done is not None:
                done(path)
            self._collect(export_path)

        path = made_from(checkpoint_path, export_path, self._format, self._assets_extra, self._receiver_fn)
        if path is None and self._background:
            self._pending = (estimator.start_export(export_path, self._receiver_fn, **arguments), finish)
        else:
            path = path or estimator.export_saved_model(export_path, self._receiver_fn, **arguments)
            finish(path)
        self._written = asked  # only now, so that the next call tries again after a failure
        return path or finished

    def rehearse(self, check: Callable[..., None]) -> None:
        """Calls `check` with the arguments that `write` passes, without the directory and the checkpoint."""
        check(self._receiver_fn, assets_extra=self._assets_extra, format=self._format)

    def wait(self) -> str | None:
        """Waits for a background export and returns its path, or None if there is none. Raises its error."""
        if self._pending is None:
            return None
        (pending, finish), self._pending = self._pending, None
        try:
            path = pending.wait()
            finish(path)
        except BaseException:
            self._written = None
            raise
        return path

    def _collect(self, export_path: str) -> None:
        for deleted in collect_garbage(export_path, self._keep):
            _log.info("Exporter %s deleted %s (exports_to_keep=%s).", self.name, deleted, self._keep)


def _written_at(path: Path) -> tuple[int, int]:
    """Returns the write time and the size of a file. A new run may write another checkpoint with the same path."""
    try:
        facts = path.stat()
    except OSError:
        return 0, 0
    return facts.st_mtime_ns, facts.st_size


def made_from(
    checkpoint_path: str, export_path: str, format: str, assets: Mapping[str, str], receiver_fn: Callable[[], Any]
) -> str | None:
    """Returns the newest export under a directory if it is equivalent to the requested one, else None.

    It must have the format and the assets, come from exactly this checkpoint, and accept the features of the receiver
    through the same transforms. Of an export at a URL, only the manifest is local, so its transforms are not compared.
    """
    newest = latest_export(export_path)
    if newest is None:
        return None
    try:
        sealed = Path(checkpoint_path, "manifest.json").read_bytes()
        manifest = json.loads(Path(newest, "manifest.json").read_bytes())
        source = manifest["format"], manifest["provenance"]["checkpoint_sha256"]
        if source != (format, hashlib.sha256(sealed).hexdigest()):
            return None
        receiver = receiver_fn()
        if isinstance(receiver, FitsTraining):
            saw = manifest["provenance"].get("training_saw") or {}
            receiver = receiver.fitted({name: facts["places"] for name, facts in saw.items()})
        known = isinstance(receiver, ServingInputReceiver)  # an export refuses anything else
        received = receiver.receiver_tensors if known else {}
        if manifest.get("receiver", {}) != described({str(name): one for name, one in received.items()}):
            return None
        index = Path(newest, BEFORE, INDEX)
        transforms = [_described(one) for one in (client_transforms(receiver) if known else ())]
        if len(transforms) != manifest["provenance"]["client_transforms"]:
            return None
        if index.is_file() and transforms != _transforms_of(index)[: len(transforms)]:
            return None
        held = {name: digest for name, digest in manifest.get("files", {}).items() if name.startswith("assets/")}
        added = {
            Path("assets", name).as_posix(): checksum(Path(os.path.expanduser(path))) for name, path in assets.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ExportError):
        return None
    return newest if held == added else None


def _described(transform: Any) -> tuple[Any, ...]:
    """Returns the values that identify a host transform, in the form that an export stores."""
    files = {argument: checksum(Path(path)) for argument, path in transform.files.items()}
    return transform.name, transform.version, json.loads(json.dumps(dict(transform.config()))), files


def _transforms_of(index: Path) -> list[tuple[Any, ...]]:
    """Returns the transforms of an export, in order. Those of its receiver come before those of the Estimator."""
    return [
        (one["name"], one["version"], one["config"], {name: file["sha256"] for name, file in one["files"].items()})
        for one in json.loads(index.read_bytes())["transforms"]
    ]


class WritingExporter:
    """The common part of the exporters: a writer, its name, and the wait for background exports.

    Args:
        writer: the writer of the exports.
    """

    def __init__(self, writer: SavedModelWriter) -> None:
        self._writer = writer

    @property
    def name(self) -> str:
        """The name of the directory under `<model_dir>/export`."""
        return self._writer.name

    def wait(self) -> str | None:
        """Waits for a background export and returns its path, or None if there is none. Raises its error."""
        return self._writer.wait()

    def rehearse(self, check: Callable[..., None]) -> None:
        """Calls `check` with the arguments of the export."""
        self._writer.rehearse(check)
