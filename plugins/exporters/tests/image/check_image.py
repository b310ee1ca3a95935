"""Checks of examples/serving: the Dockerfile's lines run in an empty environment, the manifests fit their schemas.

`nox -s serving_image` runs it; PIP_FIND_LINKS names the folder with the wheels of this checkout.
"""

import copy
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from plugins.exporters.tests.small_model import receiver_fn, rows, trained

EXAMPLES = Path("examples/serving").absolute()
TOKEN = "a-token-of-more-than-16-characters"
VERSIONS = ("1.30", "1.33", "1.36")
pytestmark = pytest.mark.timeout(1800)  # the RUN lines install jax


def instructions(kind):
    """The arguments of the lines of one kind. Continued lines are joined."""
    text = (EXAMPLES / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.removeprefix(kind).strip() for line in text.splitlines() if line.startswith(f"{kind} ")]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


@pytest.fixture(scope="module")
def empty(tmp_path_factory):
    """The variables of a shell in which the RUN lines have run, with a new Python and without other packages."""
    folder = tmp_path_factory.mktemp("image")
    subprocess.run([sys.executable, "-m", "venv", str(folder / "python")], check=True)
    passed = {
        name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "HTTP", "NO_PROXY"))
    }
    environment = {**passed, "PATH": f"{folder}/python/bin:/usr/bin:/bin", "HOME": str(folder)}
    for line in instructions("RUN"):
        subprocess.run(line, shell=True, env=environment, cwd=folder, check=True)
    return environment


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    estimator = trained(tmp_path_factory.mktemp("run") / "model")
    estimator.export_saved_model(str(folder / "models" / "digits"), receiver_fn)
    (folder / "secrets").mkdir()
    tokens = folder / "secrets" / "tokens.json"
    tokens.write_text(json.dumps([{"token": TOKEN, "models": ["digits"]}]))
    tokens.chmod(0o440)
    return folder


def test_the_lines_of_the_dockerfile_serve_a_model(empty, models):
    (line,) = instructions("CMD")
    ports = {"8080": free_port(), "8081": free_port()}
    moved = [ports.get(word, word.replace("/models/", f"{models}/models/")) for word in json.loads(line)]
    command = [word.replace("/secrets/", f"{models}/secrets/") for word in moved]
    assert command != json.loads(line)
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2, 3], "data": rows(2)[0]["x"].tolist()}]}
    with subprocess.Popen(command, env=empty, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            address = f"http://127.0.0.1:{ports['8080']}"
            wait_for(f"{address}/v2/health/ready", process)
            assert ask(f"{address}/v2/models/digits/infer", body)[0] == 401
            status, answer = ask(f"{address}/v2/models/digits/infer", body, TOKEN)
            assert status == 200
            assert {one["name"]: one["shape"] for one in answer["outputs"]}["logits"] == [2, 2]
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()


def wait_for(url, process):
    for _ in range(240):
        assert process.poll() is None, process.stderr.read()
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.5)
    pytest.fail("the server is not ready")


def ask(url, body, token=None):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def objects(name):
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


def pod_of(runtime):
    """The Pod that KServe makes of a ServingRuntime."""
    spec = {"containers": copy.deepcopy(runtime["spec"]["containers"])}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_knows_every_field(version):
    (runtime,) = [one for one in objects("kserve.yaml") if one["kind"] == "ServingRuntime"]
    for one in [*objects("kubernetes.yaml"), pod_of(runtime)]:
        kubernetes_validate.validate(one, version, strict=True)


def test_a_wrong_field_is_found():
    """The check above can fail."""
    wrong = objects("kubernetes.yaml")[0]
    wrong["spec"]["template"]["spec"]["containers"][0]["imagee"] = "x"
    with pytest.raises(kubernetes_validate.ValidationError, match="imagee"):
        kubernetes_validate.validate(wrong, VERSIONS[0], strict=True)


def test_the_manifests_call_the_server_as_its_command_takes_it(empty):
    """The installed command accepts the arguments in the manifests and in the Dockerfile."""
    known = subprocess.run(
        ["estimator", "serve", "--help"], env=empty, capture_output=True, text=True, check=True
    ).stdout
    (runtime,) = [one for one in objects("kserve.yaml") if one["kind"] == "ServingRuntime"]
    (container,) = runtime["spec"]["containers"]
    words = [*container["command"], *container["args"], *json.loads(instructions("CMD")[0])]
    options = [word for word in words if word.startswith("--")]
    assert options
    assert [option for option in options if option not in known] == []


def test_the_ports_and_paths_of_the_manifests_are_those_of_the_image():
    deployment, service = objects("kubernetes.yaml")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    exposed = shlex.split(instructions("EXPOSE")[0])
    assert [str(one["containerPort"]) for one in container["ports"]] == exposed
    assert {one["targetPort"] for one in service["spec"]["ports"]} == {one["name"] for one in container["ports"]}
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]
    (command,) = map(json.loads, instructions("CMD"))
    mounts = [one["mountPath"] for one in container["volumeMounts"]]
    assert "digits=/models/digits" in command
    assert "/models/digits" in mounts
    assert Path(command[command.index("--tokens") + 1]).parent.as_posix() in mounts
