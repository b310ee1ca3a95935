"""Which backend a run uses: the one asked for, or the best that is available."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from estimator_core._backends.base import Available, Backend
from estimator_core.errors import BackendUnavailableError, PluginError

_log = logging.getLogger("estimator_core")


def select_backend(name: str, get: Callable[[str], Callable[[], Backend]], names: Sequence[str]) -> Backend:
    """The backend of that name, or for "auto" the available one of the highest priority.

    Args:
        name: as in `RunConfig(backend=...)`.
        get: gives the backend component of a name: a class, or a function that makes a backend.
        names: those to choose from where the name is "auto".

    Raises:
        BackendUnavailableError: when the one asked for cannot be used here (never another in its place), or two are
            equally good.

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
