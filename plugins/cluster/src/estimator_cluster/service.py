"""The coordination service of jax: a key-value store in process 0, and the liveness of the processes.

Only this module imports private parts of jax. The methods used here have the same names from jax 0.10 to 0.12. orbax
and others use the service in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
from jax._src.distributed import global_state

from estimator_cluster.encryption import uses_mutual_tls
from estimator_cluster.store import StoreGoneError
from estimator_core import Processes


def mutual_tls(environ: Mapping[str, str]) -> bool:
    """Returns whether jax will connect by mutual TLS; see `encryption`."""
    return uses_mutual_tls(environ, jax.config.values, jax.__version__)


def start(processes: Processes, *, heartbeat_secs: int, timeout_secs: int) -> None:
    """Connects this process to the others through `jax.distributed`."""
    # Without this option, a lost process makes jax abort all others before they can report which one it was.
    jax.config.update("jax_enable_recoverability", True)
    # The service would handle SIGTERM for the whole life of the process. The loop has its own agreement about signals.
    jax.config.update("jax_enable_preemption_service", False)
    jax.distributed.initialize(
        **processes.initialize_arguments(),
        initialization_timeout=timeout_secs,
        heartbeat_timeout_seconds=heartbeat_secs,
        shutdown_timeout_seconds=heartbeat_secs,
    )


def stop() -> None:
    """Leaves the service. In process 0, this ends the service."""
    jax.distributed.shutdown()


class Service:
    """The store and the liveness of the processes that `jax.distributed` has connected."""

    def __init__(self) -> None:
        self._client: Any = global_state.client

    def place(self) -> tuple[int, int]:
        """Returns the index of this process, and the number of processes, according to the service."""
        return global_state.process_id, global_state.num_processes

    def put(self, key: str, value: str) -> None:
        """Writes a new key.

        Raises:
            StoreGoneError: process 0 does not answer.
        """
        self._asked(self._client.key_value_set, key, value)

    def listed(self, directory: str) -> Sequence[tuple[str, str]]:
        """Returns the keys below a directory, with their values.

        Raises:
            StoreGoneError: process 0 does not answer.
        """
        return self._asked(self._client.key_value_dir_get, f"{directory}/") or ()

    def delete(self, directory: str) -> None:
        """Removes all keys below a directory.

        Raises:
            StoreGoneError: process 0 does not answer.
        """
        self._asked(self._client.key_value_delete, f"{directory}/")

    def live(self, count: int) -> set[int]:
        """Returns the living processes. It waits until each one asks or is found dead, so call it from its own thread.

        Raises:
            StoreGoneError: process 0 does not answer.
        """
        return set(self._asked(self._client.get_live_nodes, list(range(count))))

    def _asked(self, ask: Any, *arguments: Any) -> Any:
        try:
            return ask(*arguments)
        except jax.errors.JaxRuntimeError as error:
            if "NOT_FOUND" in str(error):
                return None
            raise StoreGoneError(str(error).split("\n")[0]) from error
