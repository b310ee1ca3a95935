"""The checks of the doctor. Each of them yields its findings."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from estimator_core.plugins import default_plugins

_LITTLE_ROOM = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A finding of the doctor.

    Attributes:
        check: the name of the check.
        fault: whether it needs a repair.
        text: the finding, and for a fault what to do.
    """

    check: str
    fault: bool
    text: str


def check_versions() -> Iterator[Finding]:
    """Compares the requirements of the core and of all plugins with the installed packages."""
    from estimator_terminal.versions import unfit_versions

    records = default_plugins().records()
    names = ["estimator-core", *(record.distribution for record in records if record.distribution)]
    lines = unfit_versions(names)
    yield from (Finding(check="versions", fault=True, text=line) for line in lines)
    if not lines:
        yield Finding(check="versions", fault=False, text=f"{len(set(names))} packages are compatible")


def check_plugins() -> Iterator[Finding]:
    """Finds plugins that do not load."""
    records = default_plugins().records()
    for record in records:
        if record.status == "failed":
            yield Finding(
                check="plugins",
                fault=True,
                text=f"{record.label} does not load: {record.error} (estimator plugins doctor {record.name})",
            )
        elif not record.usable:
            yield Finding(check="plugins", fault=False, text=f"{record.label} is {record.status}: {record.error}")
    yield Finding(check="plugins", fault=False, text=f"{sum(record.usable for record in records)} load")


def check_devices(*, compute: bool = False) -> Iterator[Finding]:
    """Lists the devices that jax can use.

    Args:
        compute: whether each device of this process computes, and the results are compared.
    """
    try:
        import jax

        devices = jax.devices()
    except Exception as error:  # any error of the runtime of a device is a finding
        yield Finding(check="devices", fault=True, text=f"jax finds no device: {error}")
        return
    kinds = sorted({f"{device.platform} {device.device_kind}" for device in devices})
    yield Finding(check="devices", fault=False, text=f"{len(devices)}: {', '.join(kinds)}")
    if compute:
        from estimator_terminal.devices import faults_of

        own = jax.local_devices()
        faults = [Finding(check="devices", fault=True, text=text) for text in faults_of(own)]
        yield from faults or [Finding(check="devices", fault=False, text=f"{len(own)} compute correctly")]


def check_directory(directory: Path) -> Iterator[Finding]:
    """Checks free space and permissions in the directory of a run."""
    there = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free
    text = f"{free / 2**30:.1f} GiB are free at {there}"
    yield Finding(
        check="disk",
        fault=free < _LITTLE_ROOM,
        text=text + ("; a checkpoint may not fit: free some space" if free < _LITTLE_ROOM else ""),
    )
    yield _writable("permissions", there)
    cache = os.environ.get("JAX_COMPILATION_CACHE_DIR", "")
    if cache and "://" not in cache and Path(cache).exists():
        yield _writable("permissions", Path(cache))


def check_run(model_dir: Path) -> Iterator[Finding]:
    """Finds packages that differ from those of a run."""
    try:
        recorded = json.loads((model_dir / "run.json").read_text())["versions"]
    except (OSError, ValueError, KeyError, TypeError):
        yield Finding(check="run", fault=False, text=f"{model_dir} has no run record")
        return
    for name, version in recorded.items():
        with contextlib.suppress(metadata.PackageNotFoundError):
            now = metadata.version(name)
            if now != version:
                text = f"the run in {model_dir} was made with {name} {version}, but {now} is installed"
                yield Finding(check="run", fault=False, text=text)


def _writable(check: str, directory: Path) -> Finding:
    try:
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        return Finding(check=check, fault=True, text=f"nothing can be written to {directory}: {error}")
    return Finding(check=check, fault=False, text=f"{directory} can be written to")
