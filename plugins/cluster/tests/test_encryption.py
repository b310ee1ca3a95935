"""Tests of mutual TLS between the processes of a run: wrong settings, partial settings, and strangers."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import jax
import pytest

from estimator_cluster.encryption import NEEDED, uses_mutual_tls
from estimator_core.errors import BackendUnavailableError
from estimator_core.testing import run_processes

has_mutual_tls = pytest.mark.skipif(NEEDED[0] not in jax.config.values, reason="jax 0.12 has mutual TLS")
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
SETTINGS = dict.fromkeys((*NEEDED, "jax_mtls_peer_uri_prefix"))


def settings(certificates: dict[str, str]) -> dict[str, Any]:
    """Returns the settings of jax."""
    return {**SETTINGS, **{name: certificates[name.upper()] for name in NEEDED}}


@needs_openssl
def test_it_is_used_where_all_three_files_are_given(certificates: dict[str, str]) -> None:
    assert uses_mutual_tls({}, settings(certificates), "0.12.0")
    assert not uses_mutual_tls({}, SETTINGS, "0.12.0")
    assert not uses_mutual_tls({}, {}, "0.10.2")


@pytest.mark.parametrize(
    "variable", ["JAX_MTLS_CERT_FILE", "JAX_MTLS_PEER_URI_PREFIX", "JAX_DISTRIBUTED_VERIFY_SECURE_CREDENTIALS"]
)
def test_an_old_jax_does_not_connect_without_it(variable: str) -> None:
    with pytest.raises(
        BackendUnavailableError, match=rf"{variable} .* jax 0\.10\.2 does not have.* without it\. Install"
    ):
        uses_mutual_tls({variable: "1"}, {}, "0.10.2")
    for off in ("", *(("0", "False") if variable.endswith("CREDENTIALS") else ())):
        assert not uses_mutual_tls({variable: off}, {}, "0.10.2")


@needs_openssl
def test_what_is_missing_is_named(certificates: dict[str, str]) -> None:
    given = settings(certificates)
    with pytest.raises(
        BackendUnavailableError, match=r"JAX_MTLS_CERT_FILE and JAX_MTLS_KEY_FILE are set, .*CA_FILE is not"
    ):
        uses_mutual_tls({}, {**given, "jax_mtls_ca_file": None}, "0.12.0")
    for name in ("jax_mtls_peer_uri_prefix", "jax_distributed_verify_secure_credentials"):
        with pytest.raises(
            BackendUnavailableError, match=rf"{name.upper()} needs mutual TLS\. Set JAX_MTLS_CERT_FILE and"
        ):
            uses_mutual_tls({}, {**SETTINGS, name: "spiffe://ci/"}, "0.12.0")


@needs_openssl
@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("jax_mtls_ca_file", "no certificate", "JAX_MTLS_CA_FILE=.* cannot be used"),
        ("jax_mtls_ca_file", None, "JAX_MTLS_CA_FILE=.* cannot be used: .*No such file"),
        ("jax_mtls_cert_file", "no certificate", "JAX_MTLS_CERT_FILE=.* with JAX_MTLS_KEY_FILE=.* cannot be used"),
        ("jax_mtls_key_file", "ca.key", "KEY_VALUES_MISMATCH"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(
    certificates: dict[str, str], tmp_path: Path, name: str, content: str | None, told: str
) -> None:
    given = settings(certificates)
    path = tmp_path / "file"
    if content == "ca.key":
        path = Path(given[name]).with_name(content)
    elif content is not None:
        path.write_text(content)
    with pytest.raises(BackendUnavailableError, match=told):
        uses_mutual_tls({}, {**given, name: str(path)}, "0.12.0")


#: Each process trains a step on its half of a batch.
PROGRAM = """
import jax.numpy as jnp, numpy as np, optax, sys
import estimator_core as ec

def model_fn(features, labels, mode):
    y = features["x"] * ec.get_variable("slope", ())
    return ec.EstimatorSpec(mode, loss=jnp.mean((y - labels) ** 2), train_op=optax.sgd(0.1))

x = np.linspace(-1, 1, 32, dtype=np.float32)
config = ec.RunConfig(model_dir=sys.argv[1], tf_random_seed=1, default_hooks=False, mesh={"data": -1})
estimator = ec.Estimator(model_fn, config=config, plugins=ec.Plugins(only=["estimator-cluster"]))
estimator.train(ec.inputs.numpy_input_fn({"x": x}, 3 * x, batch_size=4, shuffle=False), max_steps=2)
print("trained to", estimator.latest_checkpoint()[-1])
"""
#: A client that reaches the port writes a key with jax's own client.
STRANGER = """
import sys
from jax._src.lib import _jax
client = _jax.get_distributed_runtime_client(sys.argv[1], 0, init_timeout=2, use_compression=True)
client.connect()
client.key_value_set("est/forged", "1")
print("has written")
"""


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Returns variables that name the certificate of a run, its key, and the authority that signed it."""
    folder = tmp_path_factory.mktemp("certificates")
    (folder / "san").write_text("subjectAltName=URI:spiffe://ci/run\n")
    elliptic = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    for words in (
        f"req -x509 {elliptic} -subj /CN=ca -days 2 -keyout ca.key -out ca.pem",
        f"req {elliptic} -subj /CN=run -keyout key.pem -out run.csr",
        "x509 -req -days 2 -in run.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile san -out cert.pem",
    ):
        subprocess.run(["openssl", *words.split()], cwd=folder, check=True, capture_output=True)
    files = zip(NEEDED, ("cert.pem", "key.pem", "ca.pem"), strict=True)
    named = {name.upper(): str(folder / file) for name, file in files}
    return {**named, "JAX_MTLS_PEER_URI_PREFIX": "spiffe://ci/"}


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "JAX_PLATFORMS": "cpu", "ESTIMATOR_RUN_SECRET": "of this run", **more}


@has_mutual_tls
@needs_openssl
def test_processes_with_certificates_train_together(tmp_path: Path, certificates: dict[str, str]) -> None:
    program = [sys.executable, "-c", PROGRAM, str(tmp_path / "run")]
    done = run_processes(program, 2, env=environment(**certificates))
    assert done.returncode == 0, done.stdout
    assert sorted(line for line in done.stdout.splitlines() if "trained" in line) == [
        "[0] trained to 2",
        "[1] trained to 2",
    ]


@has_mutual_tls
@needs_openssl
def test_a_process_without_a_certificate_is_named(tmp_path: Path, certificates: dict[str, str]) -> None:
    unset = "".join(f"os.environ.pop({name!r})\n" for name in certificates)
    code = f"import os\nif os.environ['JAX_PROCESS_ID'] == '1':\n{textwrap.indent(unset, ' ')}{PROGRAM}"
    done = run_processes([sys.executable, "-c", code, str(tmp_path / "run")], 2, env=environment(**certificates))
    assert done.returncode == 1, done.stdout
    for process in (0, 1):
        lines = [line for line in done.stdout.splitlines() if line.startswith(f"[{process}] ")]
        assert any("connects by mutual TLS" in line and "does not. Set JAX_MTLS" in line for line in lines), lines


@has_mutual_tls
@needs_openssl
@pytest.mark.parametrize(
    "protected", [pytest.param(False, id="without", marks=pytest.mark.slow), pytest.param(True, id="with")]
)
def test_a_stranger_cannot_write_a_key(certificates: dict[str, str], protected: bool) -> None:
    """Without mutual TLS, every client can write."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = f"127.0.0.1:{free.getsockname()[1]}"
    serves = (
        "import jax, sys\n"
        "jax.config.update('jax_enable_recoverability', True)\n"
        "jax.distributed.initialize(sys.argv[1], 1, 0, cluster_detection_method='deactivate')\n"
        "print('serves', flush=True)\n"
        "sys.stdin.read()\n"
        "from jax._src.distributed import global_state\n"
        "print(global_state.client.key_value_dir_get('est/'))\n"
    )
    command = [sys.executable, "-c", serves, place]
    env = environment(**(certificates if protected else {}))
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=env, **pipes) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "serves\n"
        stranger = subprocess.run(
            [sys.executable, "-c", STRANGER, place], env=environment(), capture_output=True, text=True, check=False
        )
        said, _ = server.communicate("")
    assert ("has written" in stranger.stdout) is not protected, stranger.stderr
    assert said == ("[]\n" if protected else "[('est/forged', '1')]\n")
