"""What a run computes on: the requested or best backend, the placement of arrays, and the processes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cached_property

import jax

from estimator_core._backends.base import Available, Backend
from estimator_core._backends.compile_cache import use_compile_cache
from estimator_core._backends.placement import Placement, place
from estimator_core._cluster import Processes
from estimator_core.config import RunConfig
from estimator_core.coordinator import ALONE, Coordinator
from estimator_core.errors import BackendUnavailableError, PluginError

_log = logging.getLogger("estimator_core")


def select_backend(name: str, get: Callable[[str], Callable[[], Backend]], names: Sequence[str]) -> Backend:
    """Returns the backend of that name, or for "auto" the available backend with the highest priority.

    Args:
        name: as in `RunConfig(backend=...)`.
        get: returns the backend component of a name: a class, or a function that makes a backend.
        names: the backends to choose from if the name is "auto".

    Raises:
        BackendUnavailableError: the requested backend cannot be used here (no other backend replaces it), or two
            backends are equally good.

    Example:
        >>> from estimator_core._backends.cpu import CPUBackend
        >>> select_backend("auto", lambda name: CPUBackend, ["cpu"]).name
        'cpu'
    """
    if name != "auto":
        backend = get(name)()
        probed = backend.probe()
        if not isinstance(probed, Available):
            raise BackendUnavailableError(
                f"backend {name!r} was asked for but cannot be used here: {probed.reason} Use backend='auto' to take "
                "what is there."
            )
        return backend
    found: list[tuple[int, Backend]] = []
    for candidate in names:
        try:
            backend = get(candidate)()
        except PluginError as error:
            _log.warning("backend %s is left out, because its plugin is broken: %s", candidate, error)
            continue
        probed = backend.probe()
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
            f"backends {[backend.name for backend in winners]} are equally good here; choose one with "
            "RunConfig(backend=...)."
        )
    if len(found) > 1:
        others = ", ".join(backend.name for _, backend in found if backend is not winners[0])
        _log.info("backend %r is taken, before %s: RunConfig(backend=...) chooses another", winners[0].name, others)
    return winners[0]


class Devices:
    """The devices of an Estimator's calls. Each part is resolved once, when it is first requested.

    Args:
        config: the RunConfig of the Estimator. It never changes: if the processes are found later, `config` of this
            object becomes another RunConfig.
        select: returns the backend that a config requests.
        connect: connects this process with the others of its run; None: with those that jax knows already.
        whole: all devices, of which this is the first one of this process; None: these are all.

    Example:
        >>> from estimator_core._backends.cpu import CPUBackend
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
        """The RunConfig. Once `processes` is resolved, it says which of the processes this one is."""
        return self._config if self._whole is None else self._whole.config

    @property
    def apart(self) -> bool:
        """Whether this is one process of several that works without the others."""
        return self._whole is not None

    @cached_property
    def processes(self) -> Coordinator:
        """The connected processes of the run. If none are announced, a pod's are known once the backend is ready."""
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
            _ = self.processes  # before jax looks at a device
        backend = self._select(self._config)
        backend.initialize()
        use_compile_cache(self._config.compile_cache)
        return backend

    @cached_property
    def placement(self) -> Placement:
        """Where arrays live: spread as the config says, or on this process's own devices."""
        devices = self.backend.devices()
        if self._whole is None:
            _ = self.processes
            config = self._config
            return place(devices, config.mesh, config.partition_rules, config.logical_axis_rules)
        index = self._whole.processes.index
        # One device, and the axes of the whole: what a model names is there.
        one_each = dict.fromkeys(self.config.mesh or {"data": 1}, 1)
        return place([device for device in devices if device.process_index == index], one_each, ())

    def alone(self) -> Devices:
        """This process's own devices, the same object each time. Work on them does not involve other processes."""
        return self._own if self.processes.count > 1 else self

    def single(self) -> Devices:
        """One device of this process, the same object each time, for programs that leave this machine."""
        return self if self.placement.single else self._own

    @cached_property
    def _own(self) -> Devices:
        return Devices(self._config, self._select, self._connect, whole=self)
