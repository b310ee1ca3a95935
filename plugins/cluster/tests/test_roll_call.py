"""Tests of the start: every process that has arrived names the missing ones."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from estimator_cluster.roll_call import RollCall, hosts_of, listen, report, wait_for_all
from estimator_core.errors import BackendUnavailableError


class Site:
    """A port, and processes that connect to it as threads."""

    def __init__(self, secret: bytes | None = b"of the run", patience: float = 5.0):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.secret = secret
        self.patience = patience  # seconds that the others wait longer than process 0
        self.place = f"127.0.0.1:{self.server.getsockname()[1]}"

    def call(self, index: int, count: int = 4, **fields) -> RollCall:
        values = {"who": f"host-{index}, pid {index}", "secret": self.secret, "hosts": (), **fields}
        return RollCall(index=index, count=count, source="a test", place=self.place, **values)

    def come(self, *calls: RollCall, seconds: float = 2.0) -> list[str]:
        """Returns the result of each process: "" or the text of its error."""
        with ThreadPoolExecutor(len(calls)) as pool:
            return list(pool.map(lambda call: self._one(call, seconds), calls))

    def _one(self, call: RollCall, seconds: float) -> str:
        try:
            if call.index:
                report(call, seconds + self.patience)  # process 0 answers first
            else:
                wait_for_all(call, self.server, seconds)
        except BackendUnavailableError as error:
            return str(error)
        return ""


@pytest.mark.parametrize("secret", [b"of the run", None])
def test_all_have_come_and_the_port_is_free_again(secret: bytes | None):
    site = Site(secret)
    assert site.come(*map(site.call, range(4)), seconds=20.0) == ["", "", "", ""]
    with socket.create_server(("127.0.0.1", int(site.place.rpartition(":")[2]))):
        pass


@pytest.mark.parametrize("by", [0, 1])
def test_a_process_that_has_no_mutual_tls_is_named_in_all(by: int):
    site = Site()
    heard = site.come(site.call(0, 2, mutual_tls=by == 0), site.call(1, 2, mutual_tls=by == 1))
    text = (
        f"host-{by}, pid {by} connects by mutual TLS, but host-{1 - by}, pid {1 - by} does not. Set JAX_MTLS_CERT_FILE"
    )
    assert [one.startswith(text) for one in heard] == [True, True], heard


def test_who_is_missing_is_named_in_every_process_that_has_come():
    """Process 0 tells the others when its time has expired, so they do not wait for the end of their own time."""
    site = Site(patience=30.0)
    hosts = ("a:1", "b:1", "c:1", "d:1")
    began = time.monotonic()
    heard = site.come(site.call(0, hosts=hosts), site.call(2, hosts=hosts))
    assert time.monotonic() - began < 20.0
    assert len(heard) == 2
    for text in heard:
        assert text.startswith(f"Processes 1 (b:1), 3 (d:1) have not reached {site.place} within")
        assert "of 4 processes, these have: 0 (host-0, pid 0), 2 (host-2, pid 2)" in text


def test_process_0_is_missing():
    site = Site()
    site.server.close()
    began = time.monotonic()
    with pytest.raises(BackendUnavailableError, match=r"Process 1 of 4 cannot reach process 0 at 127\.0\.0\.1"):
        report(site.call(1), 1.0)
    assert time.monotonic() - began < 8.0


@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"index": 1, "who": "host-9, pid 9"}, "host-9, pid 9 says that it is process 1 of 4, but there is host-1"),
        ({"index": 2, "count": 3}, r"host-2, pid 2 says that it is process 2 of 3, but there is process 0 of 4"),
    ],
)
def test_two_runs_at_one_address_are_refused(other: dict[str, object], says: str):
    site = Site()
    chief, first, second = site.call(0), site.call(1), site.call(**other)  # type: ignore[arg-type]
    with ThreadPoolExecutor(3) as pool:
        waiting = [pool.submit(site.come, one, seconds=20.0) for one in (chief, first)]
        time.sleep(0.5)
        waiting.append(pool.submit(site.come, second, seconds=20.0))
        heard = [one.result()[0] for one in waiting]
    assert says in heard[0]
    assert len(set(heard)) == 1, "each hears the same"


def test_a_stranger_is_ignored(caplog: pytest.LogCaptureFixture):
    """A line without the seal, half a line, and noise neither end the wait nor count as a process."""
    site = Site()
    host, _, port = site.place.rpartition(":")
    strangers = [socket.create_connection((host, int(port))) for _ in range(4)]
    strangers[0].sendall(b"[1]\n")
    strangers[1].sendall(b'- [1, 2, "me", false]\n')  # only the seal is wrong
    strangers[2].sendall(os.urandom(9000))
    try:
        heard = site.come(site.call(0, 2), site.call(1, 2), seconds=20.0)
    finally:
        for stranger in strangers:
            stranger.close()
    assert heard == ["", ""]
    assert "does not belong to this run" in caplog.text


SERVICE = """
import sys, jax
jax.distributed.initialize(sys.argv[1], num_processes=1, process_id=0)
print("ready", flush=True)
sys.stdin.read()
"""


def test_where_jax_listens_already_nobody_waits():
    """This happens after a restart of one process. The service of jax answers without a newline, and closes."""
    site = Site()
    site.server.close()
    command = [sys.executable, "-c", SERVICE, site.place]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as service:
        assert service.stdout is not None
        assert service.stdout.readline() == b"ready\n"
        began = time.monotonic()
        report(site.call(1), 20.0)
        assert time.monotonic() - began < 5.0
        service.kill()


def test_one_that_closes_without_a_word_is_not_jax():
    site = Site()
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(report, site.call(1), 1.0)
        while not coming.done():
            site.server.settimeout(0.2)
            with contextlib.suppress(TimeoutError):
                connection, _ = site.server.accept()
                connection.recv(4096)  # otherwise it would be reset
                connection.close()
        with pytest.raises(BackendUnavailableError, match="closes the connection without an answer"):
            coming.result()
    site.server.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", ""])
def test_the_roll_is_called_where_jax_is_told_to_listen(host: str):
    """Every other address stays closed, so a network of strangers never sees the port."""
    if host == "[::1]" and not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    site = Site()
    site.server.close()
    port = site.place.rpartition(":")[2]
    told = {"JAX_COORDINATOR_BIND_ADDRESS": f"{host}:{port}"} if host else {}
    with listen(site.call(0), told) as server:
        bound = server.getsockname()
    open_ = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"
    assert bound[:2] == ({"localhost": "127.0.0.1", "": open_}.get(host, host.strip("[]")), int(port))


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ("10.0.0.1", "JAX_COORDINATOR_BIND_ADDRESS='10.0.0.1' should be HOST:PORT"),
        ("192.0.2.1:8476", "cannot listen at 192.0.2.1:8476, as JAX_COORDINATOR_BIND_ADDRESS says: "),
    ],
)
def test_an_address_where_nobody_can_listen(told: str, says: str):
    site = Site()
    site.server.close()
    with pytest.raises(BackendUnavailableError, match=says):
        listen(site.call(0), {"JAX_COORDINATOR_BIND_ADDRESS": told})


@pytest.mark.parametrize(
    ("environ", "hosts"),
    [
        ({}, ()),
        ({"TF_CONFIG": json.dumps({"cluster": {"chief": ["a:1"], "worker": ["b:1"]}})}, ("a:1", "b:1")),
        ({"TF_CONFIG": json.dumps({"cluster": {"chief": ["a:1"]}})}, ()),  # a run with another number of processes
        ({"TF_CONFIG": "no json"}, ()),
        ({"SM_HOSTS": '["algo-1", "algo-2"]'}, ("algo-1", "algo-2")),
    ],
)
def test_hosts_that_the_environment_names(environ: dict[str, str], hosts: tuple[str, ...]):
    assert hosts_of(environ, 2) == hosts


@pytest.mark.slow
def test_a_run_whose_process_is_missing_ends_in_time_and_names_it(tmp_path: Path):
    """Two of three processes start as in the program itself. jax does not abort them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    code = (
        "import sys, numpy as np, optax, estimator_core as ec\n"
        "def model_fn(features, labels, mode):\n"
        "    return ec.EstimatorSpec(mode, loss=ec.get_variable('w', ()) ** 2, train_op=optax.sgd(0.1))\n"
        "ec.Estimator(model_fn, model_dir=sys.argv[1]).train(lambda: [np.zeros(2)], steps=1)\n"
    )
    told = {"JAX_COORDINATOR_ADDRESS": address, "JAX_NUM_PROCESSES": "3", "JAX_PLATFORMS": "cpu"}
    options = {"ESTIMATOR_OPTION_ESTIMATOR_CLUSTER_START_SECS": "6"}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)],
            env={**os.environ, **told, **options, "JAX_PROCESS_ID": index},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for index in "02"
    ]
    for child in children:
        said, _ = child.communicate(timeout=120)
        assert child.returncode == 1, said
        assert "BackendUnavailableError: Process 1 has not reached" in said
