"""The resources of a run: backend, placement and processes, the cache of compiled programs, and compilers' memory."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import logging
import os
import platform
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

import jax
from jax.experimental.compilation_cache import compilation_cache

from estimator_core._backends.contract import Available, Backend, Unavailable
from estimator_core._backends.placement import Placement, place
from estimator_core._cluster import Processes
from estimator_core._plugins.discovery import describe, noting_origin
from estimator_core.config import RunConfig
from estimator_core.coordinator import ALONE, Coordinator
from estimator_core.errors import BackendUnavailableError, PluginError

_log = logging.getLogger("estimator_core")
_REMEDY = "Upgrade its package, or choose another one with RunConfig(backend=...)."
#: Programs that compile faster are cheaper to compile than to look up.
MIN_COMPILE_SECS = 0.1


def use_compile_cache(where: str | Literal["auto"] | None) -> None:
    """Sets the directory in which jax caches compiled programs.

    If the process has configured a cache itself, that cache stays.

    Args:
        where: a directory. "auto": the directory of this user and this kind of processor. None: no cache.

    Example:
        >>> use_compile_cache(None)

    Others who can write to the directory can run code in this process, so the directory of "auto" belongs to the user
    alone.
    """
    current = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    if where is None or (where == "auto" and current is not None):
        return
    directory = default_directory() if where == "auto" else Path(where).expanduser().absolute()
    if str(directory) == current:
        return
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        _log.warning("compiled programs are not cached: %s; see RunConfig(compile_cache=...)", error)
        return
    jax.config.update("jax_compilation_cache_dir", str(directory))
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", MIN_COMPILE_SECS)
    compilation_cache.reset_cache()  # jax reads the setting only when it first compiles
    _log.debug("compiled programs are cached in %s", directory)


#: Shorter compilations leave little memory, and returning it would take a visible part of their time.
_LONG_COMPILE_SECS = 0.25


@functools.cache
def return_memory_of_compilers() -> None:
    """Makes each long compilation from now on return its freed memory to the system before the program runs.

    XLA leaves hundreds of megabytes in the allocator, in pieces that do not fit the arrays of a step. Only the
    allocator of glibc is affected.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim is None:
        return

    def listen(event: str, duration_secs: float, **details: str | int) -> None:
        if event == "/jax/core/compile/backend_compile_duration" and duration_secs >= _LONG_COMPILE_SECS:
            trim(0)

    jax.monitoring.register_event_duration_secs_listener(listen)


def default_directory() -> Path:
    """Returns the directory of "auto".

    Each kind of processor has its own, since compiled programs use its instructions.

    Example:
        >>> default_directory().parent.name
        'compiled'
    """
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "estimator" / "compiled" / _processor()


def _processor() -> str:
    """Returns a name for the capabilities of the processor, because several machines may share a home directory."""
    described = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            described = next((line for line in file if line.startswith(("flags", "Features"))), described)
    except OSError:
        pass  # not Linux
    return f"{platform.machine()}-{hashlib.sha256(described.encode()).hexdigest()[:12]}"


def select_backend(name: str, get: Callable[[str], Callable[[], Backend]], names: Sequence[str]) -> Backend:
    """Returns the backend of that name, or for "auto" the available backend with the highest priority.

    Args:
        name: the value of `RunConfig(backend=...)`.
        get: a function that returns the backend component of a name: a class, or a function that makes a backend.
        names: the backends to choose from if the name is "auto".

    Raises:
        BackendUnavailableError: the requested backend cannot be used here (no other backend replaces it), or two
            backends are equally good.
        PluginError: the requested backend breaks its contract.

    Example:
        >>> from estimator_core._backends.contract import CPUBackend
        >>> select_backend("auto", lambda name: CPUBackend, ["cpu"]).name
        'cpu'
    """
    if name != "auto":
        backend = get(name)()
        probed = _probed(backend)
        if not isinstance(probed, Available):
            raise BackendUnavailableError(
                f"backend {name!r} was requested but cannot be used here: {probed.reason} Use backend='auto' to use "
                "what is available."
            )
        return backend
    found: list[tuple[int, Backend]] = []
    for candidate in names:
        try:
            backend = get(candidate)()
            probed = _probed(backend)
        except PluginError as error:
            _log.warning("backend %s is left out, because its plugin is broken: %s", candidate, error)
            continue
        if isinstance(probed, Available):
            found.append((probed.priority, backend))
        else:
            _log.debug("backend %s is not available: %s", candidate, probed.reason)
    if not found:
        raise BackendUnavailableError(f"none of the backends {list(names)} can be used here")
    best = max(priority for priority, _ in found)
    winners = [backend for priority, backend in found if priority == best]
    if len(winners) > 1:
        raise BackendUnavailableError(
            f"backends {[backend.name for backend in winners]} have the same priority here; choose one with "
            "RunConfig(backend=...)."
        )
    if len(found) > 1:
        others = ", ".join(backend.name for _, backend in found if backend is not winners[0])
        _log.info("backend %r is preferred to %s: RunConfig(backend=...) chooses another", winners[0].name, others)
    return winners[0]


def _probed(backend: Backend) -> Available | Unavailable:
    try:
        probed = backend.probe()
    except Exception as error:
        raise PluginError(
            f"{describe(backend, 'backend')}: probe() failed, but it must return Unavailable for such a reason: "
            f"{type(error).__name__}: {error}. {_REMEDY}"
        ) from error
    if not isinstance(probed, Available | Unavailable):
        told = f"probe() returned {probed!r:.200}; it must return Available or Unavailable"
        raise PluginError(f"{describe(backend, 'backend')}: {told}. {_REMEDY}")
    return probed


class Devices:
    """The devices of an Estimator's calls. Each part is resolved once, when it is first requested.

    Args:
        config: the RunConfig of the Estimator. It never changes: if the processes are found later, `config` of this
            object becomes another RunConfig.
        select: a function that returns the backend that a config requests.
        connect: a function that connects this process with the others of its run. Its argument None means those that
            jax already knows.
        whole: the `Devices` of all processes, of which this object has those of this process. None: this object has all
            devices.

    Example:
        >>> from estimator_core._backends.contract import CPUBackend
        >>> devices = Devices(RunConfig(), lambda config: CPUBackend())
        >>> devices.processes.count, devices.placement.mesh.size, devices.alone() is devices
        (1, 1, True)
    """

    def __init__(
        self,
        config: RunConfig,
        select: Callable[[RunConfig], Backend],
        connect: Callable[[Processes | None], Coordinator] = lambda processes: ALONE,
        *,
        whole: Devices | None = None,
    ) -> None:
        self._config, self._select, self._connect, self._whole = config, select, connect, whole

    @property
    def config(self) -> RunConfig:
        """The RunConfig. After `processes` is resolved, it contains the index of this process."""
        return self._config if self._whole is None else self._whole.config

    @property
    def apart(self) -> bool:
        """Whether this is one of several processes and works without the others."""
        return self._whole is not None

    @cached_property
    def processes(self) -> Coordinator:
        """The connected processes of the run.

        If none are configured, the processes of a pod are known after the backend starts.
        """
        if self.apart:
            return ALONE
        group = self._config.process_group
        if group is not None:
            return self._connect(group)
        if self._config.processes != "auto":
            return ALONE
        _ = self.backend
        if not jax.distributed.is_initialized() or jax.process_count() == 1:
            return ALONE
        found = self._connect(None)
        self._config = self._config.replace(processes=Processes("", found.count, found.index, "jax.distributed"))
        return found

    @cached_property
    def backend(self) -> Backend:
        """The backend that the config requests, initialised."""
        if self._whole is not None:
            return self._whole.backend
        if self._config.process_group is not None:
            _ = self.processes  # before jax reads the devices
        backend = self._select(self._config)
        with noting_origin(lambda: f"in initialize() of {describe(backend, 'backend')}"):
            backend.initialize()
        use_compile_cache(self._config.compile_cache)
        return_memory_of_compilers()
        return backend

    @cached_property
    def placement(self) -> Placement:
        """Where arrays are placed: over the mesh of the config, or on this process's own devices."""
        backend = self.backend
        with noting_origin(lambda: f"in devices() of {describe(backend, 'backend')}"):
            devices = backend.devices()
        if not isinstance(devices, Sequence) or not devices:
            told = f"devices() returned {devices!r:.200}; it must return a sequence of at least one device of jax"
            raise PluginError(f"{describe(backend, 'backend')}: {told}. {_REMEDY}")
        if self._whole is None:
            _ = self.processes
            config = self._config
            return place(devices, config.mesh, config.partition_rules, config.logical_axis_rules)
        index = self._whole.processes.index
        # One device, with all axes of the whole mesh, so that the axes that a model names exist.
        one_each = dict.fromkeys(self.config.mesh or {"data": 1}, 1)
        return place([device for device in devices if device.process_index == index], one_each, ())

    def alone(self) -> Devices:
        """Returns this process's own devices, the same object each time. They work without the other processes."""
        return self._own if self.processes.count > 1 else self

    def single(self) -> Devices:
        """Returns one device of this process, the same object each time, for programs that run on other machines."""
        return self if self.placement.single else self._own

    @cached_property
    def _own(self) -> Devices:
        return Devices(self._config, self._select, self._connect, whole=self)
