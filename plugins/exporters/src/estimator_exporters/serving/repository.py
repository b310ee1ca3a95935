"""The models of a server. They are found in directories, loaded, and replaced by newer versions during operation."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax

import estimator_core as ec
from estimator_core.errors import ArgumentError, EstimatorError
from estimator_core.export import exports_in
from estimator_core.storage import is_url
from estimator_exporters.bundle.manifest import MANIFEST, is_checkpoint
from estimator_exporters.serving.decoding import Decoding
from estimator_exporters.serving.metrics import Metrics
from estimator_exporters.serving.mirror import Mirror
from estimator_exporters.serving.models import ServedModel, served_models
from estimator_exporters.serving.refusals import NotFoundError
from estimator_exporters.serving.request_log import Recorder, unrecorded

_log = logging.getLogger("estimator_exporters")
_EXPECTED = (EstimatorError, OSError)  # errors whose messages explain what happened
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_Stamp = frozenset[tuple[str, int, int]]  # files, with their sizes and times of last change


@dataclass(frozen=True, kw_only=True)
class Source:
    """The location of the exports of a model.

    Attributes:
        name: the name of the model.
        directory: the directory of one export, or of the time-stamped exports of the model.
        update: a function that copies the given number of newest exports into the directory. It does nothing for a
            local directory.
    """

    name: str
    directory: Path
    update: Callable[[int], None] = lambda count: None

    def newest(self, count: int, brought: int = 0) -> list[Path]:
        """Returns the newest exports, oldest first.

        Args:
            count: the number of exports.
            brought: the number of exports to keep locally, if larger. Another model with the same URL needs them.

        Raises:
            StorageError: the exports are at a URL that cannot be read.
        """
        self.update(max(count, brought))
        return exports_in(self.directory)[-count:] or (
            [self.directory] if (self.directory / "manifest.json").exists() else []
        )


def sources_of(arguments: Sequence[str]) -> list[Source]:
    """Returns the models of a command line with arguments `DIR` or `NAME=DIR`.

    DIR is the path or URL of an export, of a directory of time-stamped exports, or of a directory of several of those
    (`<model_dir>/export`).

    Raises:
        ArgumentError: there is nothing to serve, or two models have the same name.
        StorageError: a URL cannot be read.
    """
    found: list[Source] = []
    for argument in arguments:
        name, location = _divided(argument)
        directory, update = _opened(location)
        own = name or _name_of(directory)
        if exports_in(directory) or ((directory / MANIFEST).is_file() and not is_checkpoint(directory)):
            found.append(Source(name=own, directory=directory, update=update))
            continue
        below = [child for child in sorted(directory.glob("*")) if child.is_dir() and exports_in(child)]
        if not below:
            raise ArgumentError(
                f"{location} holds no export. Give the directory that export_saved_model returned, "
                "the one above it, or <model_dir>/export."
            )
        found += [
            Source(name=f"{name}.{child.name}" if name else child.name, directory=child, update=update)
            for child in below
        ]
    names = [source.name for source in found]
    for name in names:
        if names.count(name) > 1 or not _NAME.fullmatch(name):
            raise ArgumentError(f"The model name {name!r} is taken or not valid. Give another one: NAME=DIRECTORY.")
    return found


def _divided(argument: str) -> tuple[str, str]:
    """Returns the name ("" if absent) and the location of an argument. A path may contain `=` (`runs/lr=0.1`).

    Example:
        >>> _divided("spam=runs/export"), _divided("runs/lr=0.1/export")
        (('spam', 'runs/export'), ('', 'runs/lr=0.1/export'))
    """
    name, equals, location = argument.partition("=")
    if not equals or "/" in name or Path(argument).exists():
        return "", argument
    return name, location


def _opened(location: str) -> tuple[Path, Callable[[int], None]]:
    """Returns the directory of exports, and the function that copies the exports of a URL into it."""
    if not is_url(location):
        return Path(os.path.expanduser(location)), lambda count: None  # shells do not expand `~` in NAME=~/path
    mirror = Mirror(location)
    mirror.refresh(1)
    return mirror.directory, mirror.refresh


def _name_of(directory: Path) -> str:
    resolved = directory.resolve()
    return resolved.parent.name if resolved.name.isdigit() else resolved.name


@dataclass
class Repository:
    """The served models by name and version.

    Args:
        sources: the locations of the exports.
        batch_sizes: the batch sizes to compile.
        versions: the number of newest versions that are served of each model.
        metrics: the metrics that count batches and loaded exports.
        recorder: returns the function that receives the requests of a model.
    """

    sources: Sequence[Source]
    batch_sizes: Sequence[int]
    versions: int
    metrics: Metrics
    recorder: Recorder = unrecorded
    models: dict[str, dict[str, ServedModel]] = field(default_factory=dict[str, dict[str, ServedModel]])
    _failed: dict[Path, _Stamp] = field(default_factory=dict[Path, _Stamp])
    # The digests of the manifests. Two models may have the same path.
    _loads: dict[tuple[str, Path], bytes | None] = field(default_factory=dict[tuple[str, Path], bytes | None])
    _depths: dict[str, int] = field(default_factory=dict[str, int])  # number of exports in the last check
    # One thread, because each thread has its own cache of compilations.
    _loading: Decoding = field(default_factory=lambda: Decoding(1))

    @property
    def ready(self) -> bool:
        """Returns whether every source has a model."""
        return all(
            source.name in self.models or any(n.startswith(f"{source.name}:") for n in self.models)
            for source in self.sources
        )

    @property
    def loading(self) -> bool:
        """Returns whether an export is being loaded."""
        return self._loading.busy

    def get(self, name: str, version: str | None) -> tuple[str, ServedModel]:
        """Returns a version of a model, or the newest version if `version` is None.

        Raises:
            NotFoundError: there is no such model or version. The message names the existing ones.
        """
        versions = self.models.get(name)
        if not versions:
            raise NotFoundError(f"there is no model {name!r}; the models are {sorted(self.models)}")
        chosen = max(versions, key=lambda known: (len(known), known)) if version is None else version
        if chosen not in versions:
            raise NotFoundError(f"model {name!r} has no version {version!r}; it has {sorted(versions)}")
        return chosen, versions[chosen]

    def check(self, name: str, version: str | None) -> None:
        """Checks that a version of a model exists. Of a name that has only other signatures, any version passes.

        Raises:
            NotFoundError: the model or its version does not exist.
        """
        if name in self.models or not any(known.startswith(f"{name}:") for known in self.models):
            self.get(name, version)

    def statistics(self, name: str | None, version: str | None) -> list[dict[str, Any]]:
        """Returns the statistics of all models, of one model, or of one version.

        Raises:
            NotFoundError: there is no such model or version.
        """
        if name is not None:
            self.get(name, version)
        return [
            model.statistics.json(own, known)
            for own, versions in sorted(self.models.items())
            for known, model in sorted(versions.items())
            if name in (None, own) and version in (None, known)
        ]

    async def refresh(self) -> None:
        """Loads new exports. Removes missing and old versions after they have answered their requests."""
        for source in self.sources:
            await self._refresh(source)

    async def close(self) -> None:
        """Finishes the waiting requests."""
        models = [model for versions in self.models.values() for model in versions.values()]
        self.models = {}
        await asyncio.gather(*(model.close() for model in models))
        self._loading.close()

    async def _refresh(self, source: Source) -> None:
        wanted, loaded = await self._look(source, depth := self._depths.get(source.name, self.versions))
        while len(wanted) == depth and loaded.isdisjoint(path.name for path in wanted):  # none of these can be loaded
            wanted, loaded = await self._look(source, depth := depth + 1)
        places = [place for place, path in enumerate(wanted) if path.name in loaded]
        # The next check starts at the newest served export. With a smaller depth, a mirror would copy it again.
        self._depths[source.name] = max(self.versions, len(wanted) - places[-1]) if places else depth
        keep = {wanted[place].name for place in places[-self.versions :]}
        if keep and await self._drop(source, loaded - keep):
            self._loads = {key: one for key, one in self._loads.items() if key[0] != source.name or key[1].name in keep}
            await self._forget_programs()
        self.metrics.versions.labels(source.name).set(len(self._loaded(source)))

    def _loaded(self, source: Source) -> set[str]:
        """Returns the served versions of a model."""
        return {version for name, versions in self.models.items() if _belongs(name, source) for version in versions}

    async def _look(self, source: Source, depth: int) -> tuple[list[Path], set[str]]:
        """Loads exports that are new or were replaced. Returns the newest exports, and the versions served now."""
        loaded = self._loaded(source)
        brought = max(self._depths.get(other.name, 0) for other in self.sources if other.update == source.update)
        try:
            wanted = await asyncio.to_thread(source.newest, depth, brought)
        except EstimatorError as error:  # serving continues while a store cannot be read
            _log.error("The check for new exports of %s failed: %s", source.name, error)
            return [], loaded
        for path in wanted:
            stamp = _stamp(path)  # before it is read, because more files may arrive during the read
            digest = _digest(path)
            known = path.name in loaded and digest in (None, self._loads.get((source.name, path)))
            if not known and self._failed.get(path) != stamp:
                try:
                    found = await self._loading(functools.partial(self._load, source, path))
                except Exception as error:  # after any error, the other models are still served
                    self._failed[path] = stamp
                    self.metrics.loads.labels(source.name, "failed").inc()
                    _log.error("%s is not served: %s", path, error, exc_info=not isinstance(error, _EXPECTED))
                    continue
                await self._serve(source, path.name, found)
                self._loads[source.name, path] = digest
                loaded.add(path.name)
                self.metrics.loads.labels(source.name, "loaded").inc()
                _log.info("Serving %s, version %s", ", ".join(found), path.name)
        return wanted, loaded

    def _load(self, source: Source, path: Path) -> Mapping[str, ServedModel]:
        found = served_models(source.name, ec.export.load(path), self.batch_sizes, self.metrics.observer, self.recorder)
        sizes = ", ".join(map(str, self.batch_sizes))
        _log.info("Loading %s, version %s: compiling batches of %s", ", ".join(found), path.name, sizes)
        for model in found.values():
            model.warm_up()
        return found

    async def _serve(self, source: Source, version: str, found: Mapping[str, ServedModel]) -> None:
        """Serves the models of an export. They replace those of an earlier export with the same name."""
        former = {
            name: versions.pop(version)
            for name, versions in self.models.items()
            if _belongs(name, source) and version in versions
        }
        for name, model in found.items():
            self.models.setdefault(name, {})[version] = model
        for name, model in former.items():
            if not self.models[name]:
                del self.models[name]
            await model.close()
        if former:
            await self._forget_programs()

    async def _forget_programs(self) -> None:
        """Clears the caches of jax, which would keep the programs of removed models. Served models hold their own."""
        await self._loading(jax.clear_caches)

    async def _drop(self, source: Source, versions: set[str]) -> bool:
        """Removes versions. Returns whether there were any."""
        found = False
        for name in [name for name in self.models if _belongs(name, source)]:
            for version in versions & self.models[name].keys():
                await self.models[name].pop(version).close()
                found = True
                _log.info("No longer serving %s, version %s", name, version)
            if not self.models[name]:
                del self.models[name]
        return found


def _belongs(name: str, source: Source) -> bool:
    return name == source.name or name.startswith(f"{source.name}:")


def _digest(path: Path) -> bytes | None:
    """Returns a digest of the manifest of an export, or None if there is none to read."""
    try:
        return hashlib.sha256((path / MANIFEST).read_bytes()).digest()
    except OSError:
        return None


def _stamp(path: Path) -> _Stamp:
    """Returns a value that changes with each file while an export is being copied."""
    try:
        return frozenset((str(file), (stat := file.stat()).st_size, stat.st_ctime_ns) for file in path.rglob("*"))
    except OSError:
        return frozenset()
