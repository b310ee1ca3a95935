"""The models of a server: found in directories, loaded, and exchanged for newer ones while requests continue."""

from __future__ import annotations

import asyncio
import functools
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
from estimator_exporters.serving.decoding import Decoding
from estimator_exporters.serving.metrics import Metrics
from estimator_exporters.serving.mirror import Mirror
from estimator_exporters.serving.models import ServedModel, served_models
from estimator_exporters.serving.refusals import NotFoundError
from estimator_exporters.serving.request_log import Recorder, unrecorded

_log = logging.getLogger("estimator_exporters")
_EXPECTED = (EstimatorError, OSError)  # their messages say what happened
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_Stamp = frozenset[tuple[str, int, int]]  # files, with their sizes and the times of their last changes


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where the exports of a model are.

    Attributes:
        name: of the model.
        directory: of one export, or of the time-stamped exports of the model.
        update: brings that many of the newest exports into the directory; does nothing if they are written there.
    """

    name: str
    directory: Path
    update: Callable[[int], None] = lambda count: None

    def newest(self, count: int, brought: int = 0) -> list[Path]:
        """The newest exports, oldest first.

        Args:
            count: how many.
            brought: how many to hold, if more: another model of the same URL needs them.

        Raises:
            StorageError: they are at a URL that cannot be read.
        """
        self.update(max(count, brought))
        return exports_in(self.directory)[-count:] or (
            [self.directory] if (self.directory / "manifest.json").exists() else []
        )


def sources_of(arguments: Sequence[str]) -> list[Source]:
    """The models of a command line: `DIR` or `NAME=DIR`.

    DIR is an export, a directory of time-stamped exports, or a directory of several of those (`<model_dir>/export`); or
    the URL of one of these.

    Raises:
        ArgumentError: nothing to serve, or two models of one name.
        StorageError: a URL cannot be read.
    """
    found: list[Source] = []
    for argument in arguments:
        name, location = _divided(argument)
        directory, update = _opened(location)
        own = name or _name_of(directory)
        if exports_in(directory) or (directory / "manifest.json").is_file():
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
    """The name that an argument states, "" for none, and the location: a path may contain `=` (`runs/lr=0.1`).

    Example:
        >>> _divided("spam=runs/export"), _divided("runs/lr=0.1/export")
        (('spam', 'runs/export'), ('', 'runs/lr=0.1/export'))
    """
    name, equals, location = argument.partition("=")
    if not equals or "/" in name or Path(argument).exists():
        return "", argument
    return name, location


def _opened(location: str) -> tuple[Path, Callable[[int], None]]:
    """The directory of exports, and the function that fetches those of a URL into it."""
    if not is_url(location):
        return Path(os.path.expanduser(location)), lambda count: None  # shells leave it in NAME=~/path
    mirror = Mirror(location)
    mirror.refresh(1)
    return mirror.directory, mirror.refresh


def _name_of(directory: Path) -> str:
    resolved = directory.resolve()
    return resolved.parent.name if resolved.name.isdigit() else resolved.name


@dataclass
class Repository:
    """The models under their names and versions.

    Args:
        sources: where they come from.
        batch_sizes: sizes to compile.
        versions: how many of the newest versions of each are served.
        metrics: observes the batches of models, and what was loaded.
        recorder: returns what sees the requests of a model.
    """

    sources: Sequence[Source]
    batch_sizes: Sequence[int]
    versions: int
    metrics: Metrics
    recorder: Recorder = unrecorded
    models: dict[str, dict[str, ServedModel]] = field(default_factory=dict[str, dict[str, ServedModel]])
    _failed: dict[Path, _Stamp] = field(default_factory=dict[Path, _Stamp])
    _depths: dict[str, int] = field(default_factory=dict[str, int])  # how many exports were looked at last
    # One thread: with several, each keeps its own memory of past compilations.
    _loading: Decoding = field(default_factory=lambda: Decoding(1))

    @property
    def ready(self) -> bool:
        """Whether every source has a model."""
        return all(
            source.name in self.models or any(n.startswith(f"{source.name}:") for n in self.models)
            for source in self.sources
        )

    @property
    def loading(self) -> bool:
        """Whether an export is being loaded."""
        return self._loading.busy

    def get(self, name: str, version: str | None) -> tuple[str, ServedModel]:
        """A version of a model, the newest if none is named.

        Raises:
            NotFoundError: there is none; names the existing ones.
        """
        versions = self.models.get(name)
        if not versions:
            raise NotFoundError(f"there is no model {name!r}; there are {sorted(self.models)}")
        chosen = max(versions, key=lambda known: (len(known), known)) if version is None else version
        if chosen not in versions:
            raise NotFoundError(f"model {name!r} has no version {version!r}; it has {sorted(versions)}")
        return chosen, versions[chosen]

    def check(self, name: str, version: str | None) -> None:
        """That a version of a model or of one of its other signatures is there.

        Raises:
            NotFoundError: it is not.
        """
        if name in self.models or not any(known.startswith(f"{name}:") for known in self.models):
            self.get(name, version)

    def statistics(self, name: str | None, version: str | None) -> list[dict[str, Any]]:
        """Statistics of versions of models: of all, of those of a name, or of one.

        Raises:
            NotFoundError: there is none.
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
        """Loads new exports, and drops versions that are gone or too old once they have answered their requests."""
        for source in self.sources:
            await self._refresh(source)

    async def close(self) -> None:
        """Answers the waiting requests."""
        models = [model for versions in self.models.values() for model in versions.values()]
        self.models = {}
        await asyncio.gather(*(model.close() for model in models))
        self._loading.close()

    async def _refresh(self, source: Source) -> None:
        wanted, loaded = await self._look(source, depth := self._depths.get(source.name, self.versions))
        while len(wanted) == depth and loaded.isdisjoint(path.name for path in wanted):  # none of them can be loaded
            wanted, loaded = await self._look(source, depth := depth + 1)
        places = [place for place, path in enumerate(wanted) if path.name in loaded]
        # The next look starts at the newest that is served: a smaller one has the mirror of a URL fetch it again.
        self._depths[source.name] = max(self.versions, len(wanted) - places[-1]) if places else depth
        keep = {wanted[place].name for place in places[-self.versions :]}
        if keep and await self._drop(source, loaded - keep):
            # jax's caches would hold the programs of dropped models; served models hold their own compiled programs.
            await self._loading(jax.clear_caches)
        self.metrics.versions.labels(source.name).set(len(self._loaded(source)))

    def _loaded(self, source: Source) -> set[str]:
        """The versions of a model that are served."""
        return {version for name, versions in self.models.items() if _belongs(name, source) for version in versions}

    async def _look(self, source: Source, depth: int) -> tuple[list[Path], set[str]]:
        """The newest exports, loaded where they are new. Returns them and the versions that are served now."""
        loaded = self._loaded(source)
        brought = max(self._depths.get(other.name, 0) for other in self.sources if other.update == source.update)
        try:
            wanted = await asyncio.to_thread(source.newest, depth, brought)
        except EstimatorError as error:  # a store that cannot be read for a while: serving continues
            _log.error("New exports of %s cannot be looked for: %s", source.name, error)
            return [], loaded
        for path in wanted:
            stamp = _stamp(path)  # before it is read: files may arrive while it is
            if path.name not in loaded and self._failed.get(path) != stamp:
                try:
                    found = await self._loading(functools.partial(self._load, source, path))
                except Exception as error:  # whatever it is, the other models are served on
                    self._failed[path] = stamp
                    self.metrics.loads.labels(source.name, "failed").inc()
                    _log.error("%s is not served: %s", path, error, exc_info=not isinstance(error, _EXPECTED))
                    continue
                for name, model in found.items():
                    self.models.setdefault(name, {})[path.name] = model
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

    async def _drop(self, source: Source, versions: set[str]) -> bool:
        """Whether there was something to drop."""
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


def _stamp(path: Path) -> _Stamp:
    """What changes with each file of an export that is still being copied."""
    try:
        return frozenset((str(file), (stat := file.stat()).st_size, stat.st_ctime_ns) for file in path.rglob("*"))
    except OSError:
        return frozenset()
