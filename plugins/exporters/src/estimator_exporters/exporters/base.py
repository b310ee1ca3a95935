"""What every exporter does: check its arguments, write once per step, delete superfluous exports."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from estimator_core.errors import ArgumentError, ArgumentTypeError
from estimator_core.export import FitsTraining, collect_garbage, latest_export
from estimator_core.inputs import INDEX
from estimator_exporters.bundle.manifest import checksum
from estimator_exporters.bundle.write import BEFORE, described

_log = logging.getLogger("estimator_exporters")


class _Pending(Protocol):
    def wait(self) -> str: ...


class SavedModelWriter:
    """Writes exports of an estimator for one exporter.

    Args:
        name: the exporter's name, its directory below `<model_dir>/export`.
        serving_input_receiver_fn: what a request carries.
        assets_extra: files to add to each export.
        exports_to_keep: newest exports kept; None keeps all.
        format: name of an export format.
        background: write in a separate thread; the call returns at once, and `wait` returns the path.
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
        if exports_to_keep is not None and (
            isinstance(exports_to_keep, bool) or not isinstance(exports_to_keep, int) or exports_to_keep <= 0
        ):
            raise ArgumentError(f"`exports_to_keep`, if provided, must be a positive number. Got {exports_to_keep}.")
        self.name = name
        self._receiver_fn = serving_input_receiver_fn
        self._assets_extra = dict(assets_extra or {})
        self._keep = exports_to_keep
        self._format = format
        self._background = background
        self._pending: tuple[_Pending, Callable[[str], None]] | None = None
        #: The newest export: its directory, its checkpoint, and when that and each asset were written.
        self._written: tuple[Any, ...] | None = None

    def write(
        self, estimator: Any, export_path: str, checkpoint_path: str, done: Callable[[str], None] | None = None
    ) -> str | None:
        """Exports what was evaluated; None if this exporter has exported it already. In the background, the path is
        that of the export before, which is complete then.

        A process that was killed may have exported it, and not have recorded that. The path is then that of its export.

        Args:
            estimator: what is exported.
            export_path: the directory of this exporter.
            checkpoint_path: the checkpoint of that state.
            done: called with the path once the export is complete.
        """
        assets = (_written_at(Path(os.path.expanduser(path))) for path in self._assets_extra.values())
        asked = export_path, checkpoint_path, _written_at(Path(checkpoint_path, "manifest.json")), *assets
        if self._written == asked:
            return None
        finished = self.wait()  # one at a time: an export that is due while another is written holds up the training
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
        self._written = asked  # not before: after a failure, the next call tries again
        return path or finished

    def rehearse(self, check: Callable[..., None]) -> None:
        """Calls `check` as `write` will call the estimator, without the directory and the checkpoint."""
        check(self._receiver_fn, assets_extra=self._assets_extra, format=self._format)

    def wait(self) -> str | None:
        """The path of an export in the background, once it is complete; None if there is none. Raises its error."""
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
    """When a file was written, and its size: a run that starts anew writes another checkpoint of the same path."""
    try:
        facts = path.stat()
    except OSError:
        return 0, 0
    return facts.st_mtime_ns, facts.st_size


def made_from(
    checkpoint_path: str, export_path: str, format: str, assets: Mapping[str, str], receiver_fn: Callable[[], Any]
) -> str | None:
    """The newest export below a directory, if it was made in this format from this very checkpoint, with these assets,
    and takes what the receiver does, through the same transforms.

    An export at a URL is here by its manifest alone: its transforms are not compared.
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
        received = getattr(receiver, "receiver_tensors", None) or {}  # what is no receiver is refused by an export
        if manifest.get("receiver", {}) != described({str(name): one for name, one in received.items()}):
            return None
        index = Path(newest, BEFORE, INDEX)
        transforms = [_described(one) for one in getattr(receiver, "transforms", ())]
        if index.is_file() and transforms != _transforms_of(index)[: len(transforms)]:
            return None
        if transforms and f"{BEFORE}/{INDEX}" not in manifest["files"]:  # it has no transforms
            return None
        held = {name: digest for name, digest in manifest.get("files", {}).items() if name.startswith("assets/")}
        added = {
            Path("assets", name).as_posix(): checksum(Path(os.path.expanduser(path))) for name, path in assets.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return newest if held == added else None


def _described(transform: Any) -> tuple[Any, ...]:
    """What tells a host transform from others, as an export has it."""
    files = {argument: checksum(Path(path)) for argument, path in transform.files.items()}
    return transform.name, transform.version, json.loads(json.dumps(dict(transform.config()))), files


def _transforms_of(index: Path) -> list[tuple[Any, ...]]:
    """The transforms of an export, in order: those of its receiver come before those of the Estimator."""
    return [
        (one["name"], one["version"], one["config"], {name: file["sha256"] for name, file in one["files"].items()})
        for one in json.loads(index.read_bytes())["transforms"]
    ]


class WritingExporter:
    """What the exporters of this package share: a writer, its name, and waiting for it.

    Args:
        writer: writes the exports.
    """

    def __init__(self, writer: SavedModelWriter) -> None:
        self._writer = writer

    @property
    def name(self) -> str:
        """Its directory below `<model_dir>/export`."""
        return self._writer.name

    def wait(self) -> str | None:
        """The path of an export in the background, once it is complete; None if there is none. Raises its error."""
        return self._writer.wait()

    def rehearse(self, check: Callable[..., None]) -> None:
        """Lets `check` try what it will export."""
        self._writer.rehearse(check)
