"""The roll call before jax connects the processes. jax itself would abort without naming the missing ones.

Process 0 listens at the port of the coordinator until all processes have introduced themselves. After every arrival it
tells each of them who is there. Then it leaves the port to jax. A line is JSON, sealed with the secret of the run if
there is one.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import logging
import selectors
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from estimator_core.errors import BackendUnavailableError

_log = logging.getLogger("estimator_cluster")
#: A variable that jax reads too.
BIND_ADDRESS = "JAX_COORDINATOR_BIND_ADDRESS"
_LONGEST_LINE = 1 << 20
_POLL_SECS = 0.2


@dataclass(frozen=True, kw_only=True)
class RollCall:
    """The facts that a process knows before it has contacted the others.

    Args:
        index: the index of this process.
        count: the number of processes.
        who: the name of this process in messages.
        source: the source of these facts, for messages.
        place: `host:port` of process 0.
        secret: the secret of the run. None: lines are not sealed.
        hosts: the hosts of all processes, if the environment names them, else empty.
        mutual_tls: whether this process will connect to jax's service by mutual TLS.
    """

    index: int
    count: int
    who: str
    source: str
    place: str
    secret: bytes | None = field(repr=False)
    hosts: tuple[str, ...] = ()
    mutual_tls: bool = False

    def missing(self, here: Mapping[int, str], seconds: float) -> BackendUnavailableError:
        """Returns the error that names the missing processes, and those that are there."""
        absent = [index for index in range(self.count) if index not in here]
        named = [f"{index} ({self.hosts[index]})" if self.hosts else str(index) for index in absent]
        came = ", ".join(f"{index} ({who})" for index, who in sorted(here.items()))
        what = f"Process {named[0]} has" if len(named) == 1 else f"Processes {', '.join(named)} have"
        return BackendUnavailableError(
            f"{what} not reached {self.place} within {seconds:g} s; of {self.count} processes, these have: {came}. "
            f"This is process {self.index}, as {self.source} says. Start all of them; each must reach that address."
        )

    def sealed(self, value: Any) -> bytes:
        """Returns a line with a value."""
        text = json.dumps(value)
        return f"{self._seal(text)} {text}\n".encode()

    def opened(self, line: bytes) -> Any:
        """Returns the value of a line, or None for a line that no process of the run has written."""
        seal, _, text = line.decode(errors="replace").strip().partition(" ")
        if not hmac.compare_digest(seal.encode(), self._seal(text).encode()):
            return None
        try:
            return json.loads(text)
        except ValueError:
            return None

    def _seal(self, text: str) -> str:
        return "-" if self.secret is None else hmac.new(self.secret, text.encode(), hashlib.sha256).hexdigest()


def hosts_of(environ: Mapping[str, str], count: int) -> tuple[str, ...]:
    """Returns the hosts of all processes from TF_CONFIG or SageMaker, or () without either.

    Example:
        >>> told = '{"cluster": {"chief": ["a:1"], "worker": ["b:1"]}, "task": {"type": "worker", "index": 0}}'
        >>> hosts_of({"TF_CONFIG": told}, 2)
        ('a:1', 'b:1')
    """
    found: list[str] = []
    with contextlib.suppress(ValueError, AttributeError, TypeError):
        cluster = json.loads(environ.get("TF_CONFIG", "{}")).get("cluster", {})
        chief = "chief" if "chief" in cluster else "master"
        found = [*cluster.get(chief, []), *cluster.get("worker", [])]
    if not found:
        with contextlib.suppress(ValueError):
            found = json.loads(environ.get("SM_HOSTS", "[]"))
    return tuple(map(str, found)) if len(found) == count else ()


def listen(call: RollCall, environ: Mapping[str, str]) -> socket.socket:
    """Returns the server of process 0 at `JAX_COORDINATOR_BIND_ADDRESS`, or at all addresses with the port of jax.

    Args:
        call: the roll call of process 0.
        environ: the environment.

    Raises:
        BackendUnavailableError: the address is not `host:port`, or it cannot be used.
    """
    given = environ.get(BIND_ADDRESS, "")
    host, _, port = (given or f"[::]:{call.place.rpartition(':')[2]}").rpartition(":")
    if not host or not port.isdigit():
        raise BackendUnavailableError(f"{BIND_ADDRESS}={given!r} should be HOST:PORT, for example 10.0.0.1:8476.")
    try:
        if host == "[::]" and not socket.has_dualstack_ipv6():
            host = "0.0.0.0"
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, *_, place = min(found, key=lambda one: one[0] == socket.AF_INET6)
        both = host == "[::]"
        return socket.create_server(place, family=family, dualstack_ipv6=both, backlog=call.count)
    except OSError as error:
        where = f"{given}, as {BIND_ADDRESS} says" if given else f"port {port}"
        raise BackendUnavailableError(
            f"Process 0 cannot listen at {where}: {error}. Choose a free port for the coordinator, and an address of "
            "this host."
        ) from error


def wait_for_all(call: RollCall, server: socket.socket, seconds: float) -> Mapping[int, str]:
    """Returns the names of all processes in process 0 when they are there, and tells them so. It closes the server.

    Raises:
        BackendUnavailableError: some are missing, two runs share the address, two processes claim one index, or only
            some use mutual TLS.
    """
    here = {0: call.who}
    deadline = time.monotonic() + seconds
    with server, _Guests(call, server) as guests:
        while len(here) < call.count:
            if time.monotonic() > deadline:
                guests.tell({"here": sorted(here.items()), "end": True})
                raise call.missing(here, seconds)
            for index, count, who, mutual_tls in guests.arrivals():
                refusal = _refusal(call, here, index, count, who, mutual_tls)
                if refusal is not None:
                    guests.tell({"refused": refusal})
                    raise BackendUnavailableError(refusal)
                here[index] = who
                guests.tell({"here": sorted(here.items())})
    return here


def _refusal(call: RollCall, here: Mapping[int, str], index: int, count: int, who: str, mutual_tls: bool) -> str | None:
    """Returns why a process cannot join those that are here, or None if it can."""
    if mutual_tls != call.mutual_tls:
        does, does_not = (who, call.who) if mutual_tls else (call.who, who)
        return (
            f"{does} connects by mutual TLS, but {does_not} does not. Set JAX_MTLS_CERT_FILE, "
            "JAX_MTLS_KEY_FILE and JAX_MTLS_CA_FILE for all processes of the run, or for none."
        )
    if count != call.count or not 0 < index < call.count or here.get(index, who) != who:
        other = here.get(index, f"process 0 of {call.count} ({call.who})")
        return (
            f"{who} says that it is process {index} of {count}, but there is {other} at {call.place}. Two "
            "runs share an address, or two processes have the same index: give each its own."
        )
    return None


def report(call: RollCall, seconds: float) -> Mapping[int, str]:
    """Returns the names of all processes in every other process when they are there.

    A process that comes late, when jax has connected the others already, may know fewer names.

    Raises:
        BackendUnavailableError: some are missing, process 0 refuses this process, or process 0 is not reachable.
    """
    deadline = time.monotonic() + seconds
    here: dict[int, str] = {}
    error: OSError | None = None
    host, _, port = call.place.rpartition(":")
    while time.monotonic() < deadline:
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=5.0) as connection:
                connection.settimeout(_POLL_SECS)
                connection.sendall(call.sealed([call.index, call.count, call.who, call.mutual_tls]))
                for line in _lines(connection, deadline):
                    told = call.opened(line)
                    if not isinstance(told, dict):
                        return here  # the service of jax is at the port already
                    if "refused" in told:
                        raise BackendUnavailableError(told["refused"])
                    here = {int(index): str(who) for index, who in told["here"]}
                    if len(here) == call.count:
                        return here
                    if told.get("end"):
                        raise call.missing(here, seconds)
            error = None
        except OSError as failed:
            error = failed
        time.sleep(0.1)
    if here:
        raise call.missing(here, seconds)
    raise BackendUnavailableError(
        f"Process {call.index} of {call.count} cannot reach process 0 at {call.place}: "
        f"{error or 'the program there closes the connection without an answer'}. Start all processes, "
        "and give them an address of process 0 that they can reach."
    )


def _lines(connection: socket.socket, deadline: float) -> Iterator[bytes]:
    """Yields what arrives, by lines. If the connection ends before any newline, it yields all bytes: the service of jax
    sends bytes without a newline, and closes, because it does not expect a roll call.
    """
    rest, came = b"", False
    while time.monotonic() < deadline:
        try:
            data = connection.recv(1 << 16)
        except TimeoutError:
            continue
        if not data:
            if rest and not came:
                yield rest
            return
        *lines, rest = (rest + data).split(b"\n")
        came = came or bool(lines)
        yield from lines
        if len(rest) > _LONGEST_LINE:
            return


class _Guests:
    """The connections of process 0."""

    def __init__(self, call: RollCall, server: socket.socket) -> None:
        self._call, self._server = call, server
        self._selector = selectors.DefaultSelector()
        self._texts: dict[socket.socket, bytes] = {}
        self._known: set[socket.socket] = set()
        server.setblocking(False)
        self._selector.register(server, selectors.EVENT_READ)

    def __enter__(self) -> _Guests:
        return self

    def __exit__(self, *_: object) -> None:
        for connection in list(self._texts):
            self._drop(connection)
        self._selector.close()

    def arrivals(self) -> Iterator[tuple[int, int, str, bool]]:
        """Yields the processes that introduce themselves within a short while: index, count, name, and mutual TLS."""
        for key, _ in self._selector.select(_POLL_SECS):
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            if connection is self._server:
                with contextlib.suppress(OSError):
                    guest, _ = self._server.accept()
                    guest.settimeout(1.0)
                    self._texts[guest] = b""
                    self._selector.register(guest, selectors.EVENT_READ)
                continue
            try:
                data = connection.recv(4096)
            except OSError:
                data = b""
            text = self._texts[connection] = self._texts[connection] + data
            if not data or len(text) > 4096:
                self._drop(connection)
            elif b"\n" in text and connection not in self._known:
                said = self._call.opened(text.partition(b"\n")[0])
                if isinstance(said, list) and [type(one) for one in said] == [int, int, str, bool]:
                    self._known.add(connection)
                    yield said[0], said[1], said[2], said[3]
                else:
                    _log.warning(
                        "A client that does not belong to this run has reached %s before the run began, and is "
                        "ignored. Protect its port from others.",
                        self._call.place,
                    )
                    self._drop(connection)

    def tell(self, value: Any) -> None:
        """Sends a line to all known processes."""
        for connection in list(self._known):
            try:
                connection.sendall(self._call.sealed(value))
            except OSError:
                self._drop(connection)

    def _drop(self, connection: socket.socket) -> None:
        self._selector.unregister(connection)
        self._texts.pop(connection, None)
        self._known.discard(connection)
        connection.close()
