"""The manifest of a checkpoint: its contents, its writer, and a checksum of every array and file.

A directory whose manifest is absent, incomplete or altered is not a checkpoint. The manifest is written last, and seals
itself with a checksum.
"""

from __future__ import annotations

import errno
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from estimator_core._files import read_regular, write_durably
from estimator_core._packs.entry import USE_ANOTHER, PackEntry
from estimator_core.errors import CheckpointCorruptError, CheckpointError, CheckpointNotFoundError

#: The versions of the layout. Version 1 is written by orbax. Version 2 had arrays in pieces that several processes
#: wrote with tensorstore. Only a package reads it. Version 3 has the arrays in packs.
FORMAT, WHOLE_ARRAYS_FORMAT = 3, 1
MANIFEST_FILE = "manifest.json"


@dataclass(frozen=True, kw_only=True)
class ArrayEntry:
    """One array of a checkpoint.

    Args:
        shape: the shape of the variable (a typed random key of shape () is stored as words, but has shape () here).
        dtype: the name of the dtype in numpy, or in jax for typed random keys ("key<fry>").
        bytes: the number of bytes of the stored array.
        crc32: the checksum of the stored array's bytes in C order. In packs, the checksum of the checksums of its
            pieces. Empty for an array in pieces of format 2.
        key_impl: the random number generator of a typed key, otherwise None.
    """

    shape: tuple[int, ...]
    dtype: str
    bytes: int
    crc32: str
    key_impl: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns the entry as a JSON object, without absent values."""
        entry: dict[str, Any] = {
            "shape": list(self.shape),
            "dtype": self.dtype,
            "bytes": self.bytes,
            "crc32": self.crc32,
        }
        if self.key_impl is not None:
            entry["key_impl"] = self.key_impl
        return entry

    @staticmethod
    def from_json(entry: Mapping[str, Any]) -> ArrayEntry:
        """Reads an entry that `to_json` returned."""
        return ArrayEntry(
            shape=tuple(entry["shape"]),
            dtype=entry["dtype"],
            bytes=entry["bytes"],
            crc32=entry["crc32"],
            key_impl=entry.get("key_impl"),
        )


@dataclass(frozen=True, kw_only=True)
class Part:
    """The contribution of one process to a manifest.

    Args:
        arrays: the entries of the arrays of which it has written the whole or a piece, by item and path.
        packs: the packs that it has written or linked.
        checksums: one checksum for each piece in a pack, by item, path and place.
    """

    arrays: Mapping[str, Mapping[str, ArrayEntry]]
    packs: Sequence[PackEntry] = ()
    checksums: Mapping[str, Mapping[str, Mapping[str, str]]] = field(default_factory=dict[str, Any])

    def to_json(self) -> dict[str, Any]:
        """Returns the part as a JSON object."""
        arrays = {item: {path: entry.to_json() for path, entry in named.items()} for item, named in self.arrays.items()}
        return {"arrays": arrays, "packs": [pack.to_json() for pack in self.packs], "checksums": self.checksums}

    @staticmethod
    def from_json(part: Mapping[str, Any]) -> Part:
        """Reads a part that `to_json` returned."""
        return Part(
            arrays=_entries(part["arrays"]),
            packs=[PackEntry.from_json(pack) for pack in part["packs"]],
            checksums=part["checksums"],
        )


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    """One file of a checkpoint.

    Args:
        bytes: the number of bytes of the file.
        crc32: the checksum of the contents. None for the large files of arrays, which the checksums of the arrays
            cover.
    """

    bytes: int
    crc32: str | None


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The description of a checkpoint that is stored in it.

    Args:
        step: the global step.
        created: the Unix time of the save, in seconds.
        run_created: the Unix time of the first save in this model_dir, the origin of `keep_every_n_hours`.
        packages: the versions of the packages that wrote the checkpoint.
        arrays: the entries by item and path. The items are clock, variables, model_state, opt_state and hooks.
        files: every file except the manifest, by its path in the checkpoint.
        timers: the bases of the cadences, as JSON.
        extras: `CheckpointItems.manifest`.
        format: the version of the layout.
        packs: the packs that contain the arrays in format 3.
    """

    step: int
    created: float
    run_created: float
    packages: Mapping[str, str]
    arrays: Mapping[str, Mapping[str, ArrayEntry]]
    files: Mapping[str, FileEntry]
    timers: Mapping[str, Any]
    extras: Mapping[str, Any]
    format: int = WHOLE_ARRAYS_FORMAT
    packs: tuple[PackEntry, ...] = ()

    def entries(self, *items: str) -> dict[str, ArrayEntry]:
        """Returns the arrays of the items, in one dictionary by path."""
        return {path: entry for item in items for path, entry in self.arrays.get(item, {}).items()}


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Writes the manifest, sealed and flushed to the disk."""
    body: dict[str, Any] = {
        "format": manifest.format,
        "step": manifest.step,
        "created": manifest.created,
        "run_created": manifest.run_created,
        "packages": dict(manifest.packages),
        "timers": dict(manifest.timers),
        "extras": dict(manifest.extras),
        "files": {name: {"bytes": f.bytes, "crc32": f.crc32} for name, f in manifest.files.items()},
        "arrays": {item: {p: e.to_json() for p, e in sorted(named.items())} for item, named in manifest.arrays.items()},
    }
    if manifest.packs:
        body["packs"] = [pack.to_json() for pack in manifest.packs]
    write_durably(directory / MANIFEST_FILE, dump_json({**body, "seal": _seal(body)}))


def read_manifest(directory: Path) -> Manifest:
    """Reads and verifies the manifest of a checkpoint.

    Raises:
        CheckpointNotFoundError: the directory has no manifest, or the manifest of an export, so it is not a checkpoint.
        CheckpointCorruptError: the manifest is torn or altered.
        CheckpointError: a newer version of this package wrote it.
    """
    try:
        if directory.is_symlink():
            raise OSError(errno.ELOOP, "a link in the place of a checkpoint")
        data = read_regular(directory / MANIFEST_FILE)
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointNotFoundError(
            f"{directory} is not a checkpoint: it has no {MANIFEST_FILE}. Name a directory such as "
            "<model_dir>/checkpoints/100; `estimator checkpoints <model_dir>` lists the existing ones."
        ) from None
    except PermissionError:
        raise
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EINVAL, errno.EISDIR, errno.ENXIO):
            raise
        raise CheckpointCorruptError(
            f"The checkpoint {directory} is refused: it or its {MANIFEST_FILE} is a link or not a regular file. "
            f"{USE_ANOTHER}"
        ) from None
    return _parse(directory, data)


def checksum(data: bytes | memoryview) -> str:
    """Returns the CRC-32 in eight hexadecimal digits."""
    return f"{zlib.crc32(data):08x}"


def dump_json(value: object) -> bytes:
    """Returns JSON, indented for readers, in UTF-8."""
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def _parse(directory: Path, data: bytes) -> Manifest:
    try:
        body = json.loads(data)
        version = body["format"]
        if isinstance(version, int) and version > FORMAT:
            raise CheckpointError(
                f"The checkpoint {directory} has format {version}; this estimator-core reads formats up to {FORMAT}. "
                f"It was written with {body.get('packages')}. Install the newer estimator-core to read it."
            )
        if isinstance(version, str):
            raise CheckpointNotFoundError(
                f"{directory} is an export, not a checkpoint. Name the model_dir that it was exported from."
            )
        seal = body.pop("seal")
        if seal != _seal(body):
            raise ValueError(f"its seal is {seal!r}, but its contents have the seal {_seal(body)!r}")
        return Manifest(
            step=body["step"],
            created=body["created"],
            run_created=body["run_created"],
            packages=body["packages"],
            arrays=_entries(body["arrays"]),
            files={_inside(name): FileEntry(**entry) for name, entry in body["files"].items()},
            timers=body["timers"],
            extras=body["extras"],
            format=version,
            packs=tuple(PackEntry.from_json(pack) for pack in body.get("packs", ())),
        )
    except CheckpointNotFoundError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointCorruptError(
            f"The checkpoint {directory} is damaged: its manifest cannot be trusted ({error}). {USE_ANOTHER}"
        ) from error


def _entries(arrays: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, ArrayEntry]]:
    return {item: {path: ArrayEntry.from_json(one) for path, one in named.items()} for item, named in arrays.items()}


def _seal(body: Mapping[str, object]) -> str:
    return checksum(json.dumps(body, sort_keys=True, separators=(",", ":")).encode())


def _inside(name: str) -> str:
    """Returns the path of a file of a checkpoint, which must not lead out of it."""
    path = PurePosixPath(name)
    if path.is_absolute() or not path.parts or ".." in path.parts:
        raise ValueError(f"the file {name!r} lies outside")
    return name
