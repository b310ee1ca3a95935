"""The files of a checkpoint against its manifest: a lost, torn or altered one is named before anybody interprets it."""

from __future__ import annotations

from pathlib import Path

from estimator_core._checkpoint.layout import ARRAYS_DIR
from estimator_core._checkpoint.manifest import MANIFEST_FILE, USE_ANOTHER, FileEntry, Manifest, checksum
from estimator_core._packs.entry import PACK_SUFFIX
from estimator_core.errors import CheckpointCorruptError, CheckpointError, CheckpointNotFoundError

#: Bytes up to which a file of arrays is checked as a whole; above it only its size is, and each array when it is read.
_WHOLE = 1 << 20


def describe_files(directory: Path) -> dict[str, FileEntry]:
    """Size and checksum of every file below a directory but the packs, which have their own, by relative path."""
    paths = sorted(
        path
        for path in directory.rglob("*")
        if path.is_file() and path.name != MANIFEST_FILE and path.suffix != PACK_SUFFIX
    )
    names = [path.relative_to(directory) for path in paths]
    return {
        name.as_posix(): _describe(path, holds_arrays=name.parts[0].startswith(ARRAYS_DIR))
        for name, path in zip(names, paths, strict=True)
    }


def check_files(directory: Path, manifest: Manifest) -> None:
    """Compares the files of a checkpoint with its manifest.

    Raises:
        CheckpointCorruptError: names the first file that is lost, torn or altered.
        CheckpointNotFoundError: the checkpoint was deleted meanwhile.
    """
    for name, expected in manifest.files.items():
        path = directory / name
        try:
            intact = path.stat().st_size == expected.bytes and (
                expected.crc32 is None or checksum(path.read_bytes()) == expected.crc32
            )
        except OSError as error:
            raise reading_failed(directory, error) from error
        if not intact:
            raise CheckpointCorruptError(
                f"The checkpoint {directory} is damaged: {name} is not what was saved. {USE_ANOTHER}"
            )


def _describe(path: Path, *, holds_arrays: bool) -> FileEntry:
    size = path.stat().st_size
    whole = size <= _WHOLE or not holds_arrays
    return FileEntry(bytes=size, crc32=checksum(path.read_bytes()) if whole else None)


def reading_failed(directory: Path, error: Exception) -> CheckpointError:
    """The error to raise when a file or array of a checkpoint could not be read."""
    text = " ".join(str(error).split())[:300]
    if not directory.exists():
        return CheckpointNotFoundError(f"The checkpoint {directory} was deleted while being read. Use a newer one.")
    if isinstance(error, PermissionError) or "permission" in text.lower():
        return CheckpointError(f"The checkpoint {directory} may not be read by this user ({text}).")
    return CheckpointCorruptError(
        f"The checkpoint {directory} is damaged ({type(error).__name__}: {text}). {USE_ANOTHER}"
    )
