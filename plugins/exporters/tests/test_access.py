"""Tests of tokens and their models and of certificates of both sides. No unauthorized client is served."""

import http.client
import json
import ssl
import subprocess

import pytest

from estimator_core.cli import main
from estimator_core.errors import ArgumentError
from estimator_exporters.serving.access import access_from, check_reachable, renewed_access
from estimator_exporters.serving.refusals import RefusedError
from estimator_exporters.serving.tls import Tls, tls_from
from plugins.exporters.tests.live_server import echo, running

ALL, SPAM = "a-token-for-everything", "a-token-for-spam-only"
BODY = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}


def file_of(folder, content, mode=0o600):
    path = folder / "tokens.json"
    path.write_text(json.dumps(content))
    path.chmod(mode)
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    rights = [{"token": ALL}, {"token": SPAM, "models": ["spam*"]}]
    access = access_from(file_of(tmp_path_factory.mktemp("tokens"), rights))
    models = {name: {"1": echo("float32")} for name in ("spam", "spam:other", "ham")}
    with running(models, access=access) as found:
        yield found


@pytest.mark.parametrize(
    ("method", "path", "statuses"),  # without a token, with an unknown one, with that for spam, with that for all
    [
        ("GET", "/v2/health/live", (200, 200, 200, 200)),
        ("GET", "/v2/health/ready", (200, 200, 200, 200)),
        ("GET", "/metrics", (401, 401, 200, 200)),
        ("GET", "/v2", (401, 401, 200, 200)),
        ("GET", "/v2/models/stats", (401, 401, 200, 200)),
        ("POST", "/v2/repository/index", (401, 401, 200, 200)),
        ("POST", "/v2/models/spam/infer", (401, 401, 200, 200)),
        ("POST", "/v2/models/spam:other/infer", (401, 401, 200, 200)),
        ("POST", "/v2/models/spam/versions/1/infer", (401, 401, 200, 200)),
        ("POST", "/v2/models/ham/infer", (401, 401, 403, 200)),
        ("POST", "/v2/models/none/infer", (401, 401, 403, 404)),
        ("GET", "/v2/models/ham", (401, 401, 403, 200)),
        ("GET", "/v2/models/ham/ready", (401, 401, 403, 200)),
        ("GET", "/v2/models/ham/versions/1", (401, 401, 403, 200)),
        ("GET", "/v2/models/ham/versions/1/stats", (401, 401, 403, 200)),
        ("GET", "/v2/models/spam/versions/1/config", (401, 401, 200, 200)),
        ("POST", "/v1/models/ham:predict", (401, 401, 403, 200)),
        ("GET", "/v1/models/ham/metadata", (401, 401, 403, 200)),
        ("GET", "/v1/models/ham/versions/1", (401, 401, 403, 200)),
    ],
)
def test_rights(server, method, path, statuses):
    found = []
    body = None if method == "GET" else {"instances": [[1, 2]]} if path.startswith("/v1") else BODY
    for token in (None, "an-unknown-long-token", SPAM, ALL):
        headers = {"authorization": f"Bearer {token}"} if token else {}
        status, answer, content = server.request(method, path, body, headers)
        found.append(status)
        assert ("www-authenticate" in answer) == (status == 401)
        assert token is None or token not in str(content)
    assert tuple(found) == statuses


@pytest.mark.parametrize(
    ("content", "mode", "message"),
    [
        ([{"token": ALL}], 0o604, "Every user of this machine may read"),
        ([], 0o600, "must hold a JSON list"),
        ({"token": ALL}, 0o600, "must hold a JSON list"),
        ([{"token": "short"}], 0o600, "at least 16"),
        ([{"token": ALL, "model": ["spam"]}], 0o600, "must hold a JSON list"),
        ([{"token": ALL, "models": "spam"}], 0o600, "must hold a JSON list"),
    ],
)
def test_files_of_tokens_that_are_none(tmp_path, content, mode, message):
    with pytest.raises(ArgumentError, match=message) as error:
        access_from(file_of(tmp_path, content, mode))
    assert ALL not in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ArgumentError, match="cannot be read"):
        access_from(tmp_path / "none.json")


def test_renewed_tokens_hold_and_garbage_changes_nothing(tmp_path, caplog):
    path = file_of(tmp_path, [{"token": ALL}])
    access, renew = renewed_access(path)

    def allowed(token):
        try:
            access(f"Bearer {token}", "ham")
        except RefusedError as refusal:
            return refusal.status
        return 200

    for damage in (lambda: file_of(tmp_path, []), lambda: path.chmod(0o604), path.unlink):
        damage()
        renew()
        assert (allowed(ALL), allowed(SPAM)) == (200, 401)
    assert caplog.text.count("The previous tokens stay valid") == 2, "a mode alone does not change a file"
    file_of(tmp_path, [{"token": SPAM}, {"token": "a-third-token-of-spam", "models": ["spam"]}])
    assert (allowed(ALL), allowed(SPAM)) == (200, 401), "it is read without a look"
    renew()
    assert [allowed(token) for token in (ALL, SPAM, "a-third-token-of-spam")] == [401, 200, 403]
    renew()
    assert ALL not in caplog.text


def test_nobody_is_served_by_accident(export, capsys):
    for host in ("127.0.0.1", "::1", "localhost"):
        check_reachable(host, protected=False, insecure=False)
    for host in ("0.0.0.0", "::", "10.1.2.3", "example.com"):
        check_reachable(host, protected=True, insecure=False)
        check_reachable(host, protected=False, insecure=True)
        with pytest.raises(ArgumentError, match="--allow-anyone"):
            check_reachable(host, protected=False, insecure=False)
    assert main(["serve", export, "--host", "0.0.0.0"]) == 2
    assert "without authentication" in capsys.readouterr().err


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """An authority, and the certificates that it signed for the server and for a client."""
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *curve, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority", "-days", "2")
    (folder / "name.txt").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    for name in ("server", "client"):
        openssl("req", *curve, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        signed = ("-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2")
        openssl("x509", "-req", *signed, "-extfile", "name.txt", "-out", f"{name}.pem")
    return folder


def asked(server, context):
    connection = http.client.HTTPSConnection("localhost", server.port, context=context, timeout=30)
    try:
        connection.request("POST", "/v2/models/echo/infer", json.dumps(BODY).encode())
        return json.loads(connection.getresponse().read())["outputs"][0]["data"]
    finally:
        connection.close()


def test_tls_and_certificates_of_clients(certificates):
    trusting = ssl.create_default_context(cafile=certificates / "ca.pem")
    known = ssl.create_default_context(cafile=certificates / "ca.pem")
    known.load_cert_chain(certificates / "client.pem", certificates / "client.key")
    files = (certificates / "server.pem", certificates / "server.key")
    models = {"echo": {"1": echo("float32")}}
    with running(models, tls=tls_from(*files, None)) as server:
        assert asked(server, trusting) == [1, 2]
        with pytest.raises(ssl.SSLCertVerificationError):
            asked(server, ssl.create_default_context())
    with running(models, tls=tls_from(*files, certificates / "ca.pem")) as server:
        assert asked(server, known) == [1, 2]
        with pytest.raises((ssl.SSLError, ConnectionError, http.client.RemoteDisconnected)):
            asked(server, trusting)
        assert asked(server, known) == [1, 2]


def test_certificates_that_cannot_be_used(certificates, tmp_path):
    assert tls_from(None, None, None) is None
    with pytest.raises(ArgumentError, match="both --tls-cert and --tls-key"):
        tls_from(certificates / "server.pem", None, None)
    with pytest.raises(ArgumentError, match="both --tls-cert and --tls-key"):
        tls_from(None, None, certificates / "ca.pem")
    with pytest.raises(ArgumentError, match="cannot be used"):
        tls_from(certificates / "server.pem", certificates / "client.key", None)
    with pytest.raises(ArgumentError, match="cannot be used"):
        tls_from(certificates / "server.pem", tmp_path / "none", None)
    assert isinstance(tls_from(certificates / "server.pem", certificates / "server.key", None), Tls)
