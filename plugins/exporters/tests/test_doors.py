"""Tests of a protected server with curl: TLS, client certificates, tokens, rights, and the renewal of their files."""

import json
import os
import subprocess
import time

import jax.numpy as jnp
import numpy as np
import pytest

import estimator_core as ec
from estimator_core.cli import main
from plugins.exporters.tests.command_server import needs_curl, started
from plugins.exporters.tests.small_model import model_fn, rows

FIRST, OTHER, LATER = "the-first-token-of-all", "a-token-for-spam-only", "the-token-that-follows"
X = rows(2)[0]["x"]
BODY = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 3], "data": X.tolist()}]}
pytestmark = needs_curl


def openssl(folder, *arguments):
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def signed(folder, authority, name):
    """A key and a certificate of an authority. A new authority is created first."""
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    if not (folder / f"{authority}.pem").exists():
        own = ("-keyout", f"{authority}.key", "-out", f"{authority}.pem")
        openssl(folder, "req", "-x509", *curve, *own, "-subj", f"/CN={authority}", "-days", "2")
    (folder / "names.txt").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    openssl(folder, "req", *curve, "-keyout", f"{name}.new.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
    by = ("-CA", f"{authority}.pem", "-CAkey", f"{authority}.key", "-CAcreateserial", "-days", "2")
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", *by, "-extfile", "names.txt", "-out", f"{name}.new.pem")
    for kind in ("key", "pem"):
        os.replace(folder / f"{name}.new.{kind}", folder / f"{name}.{kind}")


def write(path, content):
    """Replaces a file atomically, as a Secret is renewed."""
    beside = path.with_suffix(".new")
    beside.write_text(content if isinstance(content, str) else json.dumps(content))
    beside.chmod(0o600)
    os.replace(beside, path)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    signed(folder, "authority", "server")
    signed(folder, "authority", "client")
    write(folder / "tokens.json", [{"token": FIRST}, {"token": OTHER, "models": ["spam*"]}])
    return folder


@pytest.fixture(scope="module")
def server(export, files):
    tls = ("--tls-cert", files / "server.pem", "--tls-key", files / "server.key", "--tls-client-ca")
    more = ("--tokens", files / "tokens.json", "--grpc-port", "0", "--poll-seconds", "0.1", "--batch-sizes", "1,2")
    with started(f"digits={export}", *tls, files / "authority.pem", *more) as found:
        found.will_log = []
        yield found
        found.process.terminate()
        assert found.ended() == 0
    assert "Traceback" not in found.log
    for words in found.will_log:
        assert words in found.log
    assert FIRST not in found.log


def ask(server, files, token=FIRST, *, client=True, authority="authority", path="/v2/models/digits/infer", body=BODY):
    """The status and the body of an answer, for a token and a client certificate."""
    own = ("--cert", files / "client.pem", "--key", files / "client.key") if client else ()
    shown = () if token is None else ("-H", f"Authorization: Bearer {token}")
    return server.curl(path, "--cacert", files / f"{authority}.pem", *own, *shown, body=body)


def until(answer, expected, seconds=30):
    ends = time.monotonic() + seconds
    while (found := answer()) != expected and time.monotonic() < ends:
        time.sleep(0.1)
    assert found == expected


def test_tokens_and_certificates(server, files):
    status, content = ask(server, files)
    assert status == 200
    assert {one["name"]: one["shape"] for one in json.loads(content)["outputs"]}["logits"] == [2, 2]
    assert ask(server, files, None)[0] == 401
    assert ask(server, files, "a-token-that-nobody-has")[0] == 401
    assert ask(server, files, OTHER)[0] == 403
    assert ask(server, files, None, path="/v2/health/live", body=None)[0] == 200
    assert ask(server, files, client=False)[0] == 0, "a client without a certificate was let in"
    assert server.curl("/v2/health/live")[0] == 0, "curl trusts an authority that it does not know"
    server.scheme = "http"
    try:
        assert server.curl("/v2/health/live")[0] == 0, "it answers without encryption"
    finally:
        server.scheme = "https"


def test_grpc_wants_the_same(server, files):
    grpc = pytest.importorskip("grpc")
    from estimator_exporters.serving.grpc_messages import MESSAGES, SERVICE

    def asked(*pair, token=FIRST):
        secrets = grpc.ssl_channel_credentials((files / "authority.pem").read_bytes(), *pair)
        with grpc.secure_channel(f"localhost:{server.grpc_port}", secrets) as channel:
            call = channel.unary_unary(
                f"/{SERVICE}/ModelReady",
                request_serializer=MESSAGES["ModelReadyRequest"].SerializeToString,
                response_deserializer=MESSAGES["ModelReadyResponse"].FromString,
            )
            request = MESSAGES["ModelReadyRequest"](name="digits")
            return call(request, timeout=10, metadata=(("authorization", f"Bearer {token}"),)).ready

    pair = [(files / f"client.{kind}").read_bytes() for kind in ("key", "pem")]
    assert asked(*pair)
    with pytest.raises(grpc.RpcError):
        asked()
    with pytest.raises(grpc.RpcError, match="PERMISSION_DENIED"):
        asked(*pair, token=OTHER)


def test_tokens_are_renewed_and_garbage_changes_nothing(server, files):
    server.will_log.append("The previous tokens stay valid")
    for content in ("{", "[]", json.dumps([{"token": "short"}])):
        write(files / "tokens.json", content)
        time.sleep(0.5)
        assert ask(server, files)[0] == 200
        assert ask(server, files, None)[0] == 401
    (files / "tokens.json").unlink()
    time.sleep(0.5)
    assert ask(server, files)[0] == 200
    write(files / "tokens.json", [{"token": LATER}, {"token": FIRST, "models": ["spam"]}])
    until(lambda: ask(server, files, LATER)[0], 200)
    assert ask(server, files)[0] == 403
    assert ask(server, files, OTHER)[0] == 401
    write(files / "tokens.json", [{"token": FIRST}])
    until(lambda: ask(server, files)[0], 200)


def test_a_certificate_is_renewed_and_garbage_changes_nothing(server, files):
    server.will_log.append("The server keeps the previous certificates")
    whole = (files / "server.pem").read_text()
    write(files / "server.pem", "nothing")
    time.sleep(0.5)
    assert ask(server, files)[0] == 200
    write(files / "server.pem", whole)
    signed(files, "successor", "server")
    until(lambda: ask(server, files, authority="successor")[0], 200)
    assert ask(server, files)[0] == 0, "the certificate of before is still shown"


def table_fn(features, labels, mode):
    return model_fn({"x": jnp.stack([features["age"], features["income"], features["age"]], axis=1)}, labels, mode)


def table_model(folder):
    """An export of a model of two columns that also returns them. train.csv contains the columns."""
    generator = np.random.default_rng(0)
    table = {"age": generator.uniform(18, 80, 400).round(1), "income": generator.normal(50, 5, 400).round(1)}
    lines = [f"{age},{income},1" for age, income in zip(*table.values(), strict=True)]
    (folder / "train.csv").write_text("\n".join(["age,income,label", *lines]) + "\n")
    batch = {name: column.astype(np.float32) for name, column in table.items()}
    config = ec.RunConfig(model_dir=str(folder / "model"), tf_random_seed=1)
    estimator = ec.Estimator(table_fn, config=config).train(lambda: [(batch, np.ones(400, np.int32))], steps=1)
    receiver = ec.export.build_raw_serving_input_receiver_fn({name: ec.export.Feature((None,)) for name in batch})
    return estimator.export_saved_model(str(folder / "export"), receiver), table


@pytest.mark.slow
@pytest.mark.plugins  # needs estimator-inputs
def test_a_sample_of_requests_is_checked_against_the_training_data(tmp_path, capsys):
    export, table = table_model(tmp_path)
    log = ("--request-log", tmp_path / "log", "--request-share", "0.5", "--request-mask", "income")
    check = [
        "inputs",
        "validate",
        "--against",
        str(tmp_path / "train.csv"),
        "--label",
        "label",
        "--no-label",
        "--ignore",
        "income",
    ]
    for name, shift, code in (("good", 0, 0), ("drifted", 200, 3)):
        with started(f"{name}={export}", *log, "--batch-sizes", "8") as server:
            pairs = zip(table["age"] + shift, table["income"], strict=True)
            instances = [{"age": float(age), "income": float(income)} for age, income in pairs]
            for start in range(0, 400, 100):
                body = {"instances": instances[start : start + 100]}
                assert server.curl(f"/v1/models/{name}:predict", body=body)[0] == 200
            server.process.terminate()
            assert server.ended() == 0
        path = tmp_path / "log" / f"{name}.jsonl"
        logged = [json.loads(line) for line in path.read_text().splitlines()]
        assert 140 < len(logged) < 260
        assert {row["income"] for row in logged} == {None}
        assert main([*check, str(path)]) == code, capsys.readouterr().out
    assert "age" in capsys.readouterr().out


def test_nobody_else_is_served_without_a_token_or_a_certificate(export, capsys):
    for host in ("0.0.0.0", "::"):
        assert main(["serve", export, "--host", host, "--port", "0"]) == 2
        assert "other machines could use this server" in capsys.readouterr().err
