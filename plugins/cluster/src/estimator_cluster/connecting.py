"""Connects this process with the other processes of its run."""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NoReturn

import jax

from estimator_cluster import service
from estimator_cluster.coordinator import JaxCoordinator
from estimator_cluster.ending import RESUMABLE_EXIT_STATUS, describe_at_once, end_now, leave
from estimator_cluster.identity import SECRET, Identity, identity_of
from estimator_cluster.liveness import Watch
from estimator_cluster.roll_call import RollCall, hosts_of, listen, report, wait_for_all
from estimator_cluster.store import SealedStore, Store
from estimator_core import Processes
from estimator_core.coordinator import Coordinator, Lost
from estimator_core.errors import BackendUnavailableError, ProcessLostError

_log = logging.getLogger("estimator_cluster")
#: The grace time without process 0, as a part of `heartbeat_secs`. Twice this part plus the part after which process 0
#: counts as silent is less than 1, so that this process ends before jax aborts it.
_GRACE_WITHOUT_SERVICE = 0.05
#: The number of `heartbeat_secs` after the roll call after which a process that jax has not connected counts as gone.
_ROLL_HEARTBEATS = 3
#: The coordinator of this process. The list has at most one element, because jax connects once.
_CONNECTED: list[JaxCoordinator] = []


def connect(processes: Processes | None, options: Mapping[str, Any]) -> Coordinator:
    """Connects this process with the other processes of its run, once in the life of the process.

    Args:
        processes: the processes of the run. None: those that the program, or a backend for its pod, has already
            connected.
        options: the options of this plugin.

    Raises:
        BackendUnavailableError: some processes are missing, or belong to another run. The message names them.
    """
    owned = not jax.distributed.is_initialized()
    if _CONNECTED:
        coordinator = _CONNECTED[0]
    else:
        named: Mapping[int, str] = {}
        if processes is not None and owned:
            _log.info("Process %d of %d (%s): connecting to %s", *_numbers(processes))
            named = _start(processes, options["heartbeat_secs"], options["start_secs"])
        found = service.Service()
        coordinator = coordinator_of(found, *found.place(), owned=owned, named=named, **options)
        _CONNECTED.append(coordinator)
        # jax waits without limit in C++ for the devices of each process. The coordinator meanwhile notices lost
        # processes.
        together = jax.process_index(), jax.process_count()
        if together != (coordinator.index, coordinator.count):
            raise BackendUnavailableError(
                f"The devices of jax belong to process {together[0]} of {together[1]}, but its coordination service "
                f"says that this is process {coordinator.index} of {coordinator.count}. Use a backend of jax that "
                "works over several processes."
            )
    if processes is not None and (processes.index, processes.count) != (coordinator.index, coordinator.count):
        raise BackendUnavailableError(
            f"This process is already connected, as process {coordinator.index} of {coordinator.count}; it cannot "
            f"become process {processes.index} of {processes.count}, as {processes.source} says."
        )
    return coordinator


def _numbers(processes: Processes) -> tuple[int, int, str, str]:
    return processes.index, processes.count, processes.source, _place(processes)


def coordinator_of(
    store: Store,
    index: int,
    count: int,
    *,
    heartbeat_secs: float,
    grace_secs: float,
    start_secs: float,
    owned: bool,
    named: Mapping[int, str] = MappingProxyType({}),
) -> JaxCoordinator:
    """Returns the coordinator of processes that share one store.

    Args:
        store: the store that all processes see.
        index: the index of this process.
        count: the number of processes.
        heartbeat_secs: the seconds of silence after which a process counts as lost.
        grace_secs: the seconds that a process has to end after another one is lost.
        start_secs: the seconds that the processes wait for each other to introduce themselves.
        owned: whether this package has connected jax, and has to disconnect it.
        named: the names of processes that are known already, by index.

    Raises:
        BackendUnavailableError: the processes do not belong to one run.
        ProcessLostError: a process is lost.
    """
    identity = identity_of(os.environ)
    sealed = SealedStore(store, identity.secret)
    # Until each process has introduced itself.
    who = [named.get(process, "it had just connected") for process in range(count)]
    noticed, failed = threading.Event(), threading.Event()

    def on_lost(lost: Lost) -> None:
        describe_at_once(lost, count)
        # Without process 0 jax aborts this process at the end of `heartbeat_secs`, and the exit status has no meaning.
        seconds = grace_secs if lost.index else min(grace_secs, _GRACE_WITHOUT_SERVICE * heartbeat_secs)
        threading.Thread(target=end_if_stuck, args=(seconds,), name="process-lost", daemon=True).start()

    def end_if_stuck(seconds: float) -> None:
        """Ends the process from a thread, because the main thread may wait in a collective or may end too slowly."""
        if noticed.wait(seconds):
            time.sleep(seconds)
        else:
            os.write(2, b"estimator: this process waits for the lost one and is ended.\n")
        end_now(watch, index, count, RESUMABLE_EXIT_STATUS, grace_secs=grace_secs)

    def at_exit() -> None:
        if watch.lost is None and not failed.is_set():
            coordinator.close()
        if watch.lost is not None or failed.is_set():
            end_now(watch, index, count, 1 if failed.is_set() else RESUMABLE_EXIT_STATUS, grace_secs=grace_secs)

    stays = owned and index == 0
    watch = Watch(sealed, identity.base, index, who, heartbeat_secs=heartbeat_secs, stays=stays, on_lost=on_lost)
    coordinator = JaxCoordinator(
        sealed,
        identity.base,
        index,
        count,
        watch,
        on_fail=failed.set,
        on_news=noticed.set,
        on_close=lambda: leave(watch, index, count, owned=owned),
    )
    # Runs before the exit handler of jax, which would wait minutes for a lost process.
    atexit.register(at_exit)
    try:
        _introduce(coordinator, sealed, identity, who, timeout=start_secs)
    except BackendUnavailableError as error:
        coordinator.fail(error)
        raise
    return coordinator


def _place(processes: Processes) -> str:
    return processes.coordinator or f"the address that jax finds by {processes.method}"


def _start(processes: Processes, heartbeat_secs: int, start_secs: int) -> Mapping[int, str]:
    """Connects to the service of jax. Returns the names of the processes from the roll call.

    jax waits in C++, where no signal arrives, and aborts if a process is missing. It
    therefore runs in a thread, and this thread watches the time.
    """
    deadline = time.monotonic() + start_secs
    named: Mapping[int, str] = {}
    mutual_tls = service.mutual_tls(os.environ)
    if processes.coordinator:  # otherwise jax finds the address, and only jax knows which processes are there
        named = _call_the_roll(processes, start_secs, mutual_tls=mutual_tls)
        if not mutual_tls:  # all processes are there, and nothing else delays them for long
            start_secs = min(start_secs, _ROLL_HEARTBEATS * heartbeat_secs)
            deadline = time.monotonic() + start_secs
    errors: list[Exception] = []

    def start() -> None:
        try:
            service.start(processes, heartbeat_secs=heartbeat_secs, timeout_secs=start_secs + 60)
        except Exception as error:
            errors.append(error)

    starting = threading.Thread(target=start, name="processes-start", daemon=True)
    starting.start()
    while starting.is_alive():
        starting.join(0.1)
        if time.monotonic() > deadline:
            sys.stderr.flush()
            if mutual_tls and processes.coordinator:
                raise BackendUnavailableError(
                    f"All {processes.count} processes have reached {_place(processes)}, but they have not connected by "
                    f"mutual TLS within {start_secs} s. Each certificate must be signed by one in the JAX_MTLS_CA_FILE "
                    "of the others, and be valid for the host of process 0, or have a URI that begins with "
                    "JAX_MTLS_PEER_URI_PREFIX."
                )
            if processes.coordinator:
                _end_unconnected(processes, named, start_secs)
            raise BackendUnavailableError(
                f"Not all {processes.count} processes have reached {_place(processes)} within {start_secs} s. This is "
                f"process {processes.index}, as {processes.source} says. Start all of them; each must reach that "
                "address."
            )
    if errors:
        raise errors[0]
    return named


def _end_unconnected(processes: Processes, named: Mapping[int, str], seconds: float) -> NoReturn:
    """Ends this process after the roll call, because another one was lost before jax had connected it."""
    came = ", ".join(f"{index} ({who})" for index, who in sorted(named.items()))
    text = (
        f"estimator: All {processes.count} processes have reached {_place(processes)}, but jax has not connected them "
        f"within {seconds:g} s, so one of them is gone: {came}. Process {processes.index} ends now; start all of them "
        "again.\n"
    )
    with contextlib.suppress(OSError):
        os.write(2, text.encode())
    os._exit(RESUMABLE_EXIT_STATUS)


def _call_the_roll(processes: Processes, seconds: float, *, mutual_tls: bool) -> Mapping[int, str]:
    """Returns the names of all processes when they have connected to the port of process 0. It is free afterwards."""
    identity = identity_of(os.environ)
    call = RollCall(
        index=processes.index,
        count=processes.count,
        who=identity.who,
        source=processes.source,
        place=processes.coordinator,
        secret=identity.secret,
        hosts=hosts_of(os.environ, processes.count),
        mutual_tls=mutual_tls,
    )
    if processes.index:
        return report(call, seconds)
    return wait_for_all(call, listen(call, os.environ), seconds)


def _introduce(
    coordinator: JaxCoordinator, store: SealedStore, identity: Identity, who: list[str], *, timeout: float
) -> None:
    """Records who the processes are. Each process introduces itself, and checks that all belong to one run.

    Raises:
        BackendUnavailableError: the processes belong to different runs, or have different secrets.
        ProcessLostError: a process is lost.
    """
    index, count = coordinator.index, coordinator.count
    store.put(f"est/hello/{index}", json.dumps([index, identity.run, identity.attempt, identity.who]))
    deadline, pause = time.monotonic() + timeout, 0.002
    while len(told := {hello[0]: hello[1:] for hello in map(json.loads, store.values("est/hello"))}) < count:
        if (lost := coordinator.lost()) is not None:
            raise ProcessLostError(lost.describe(count), lost.index)
        if time.monotonic() > deadline:
            late = [process for process in range(count) if process not in told]
            raise BackendUnavailableError(
                f"Processes {late} of {count} have not introduced themselves to process {index} within {timeout:g} s. "
                f"Either they are gone, or {SECRET} differs: all processes of a run need the same value."
            )
        time.sleep(pause)
        pause = min(2 * pause, 0.2)
    chief = told[0]
    for process, (run, attempt, name) in sorted(told.items()):
        if [run, attempt] != chief[:2]:
            raise BackendUnavailableError(
                f"Process {process} ({name}) belongs to run {run!r}, attempt {attempt}, but process 0 ({chief[2]}) to "
                f"run {chief[0]!r}, attempt {chief[1]}. Two runs share an address: give each its own."
            )
        who[process] = name
