"""Stores that run on this machine: moto for S3, azurite for Azure, Google's testbench for GCS.

A test that needs a missing emulator is skipped, and the reason names what to install.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import hashlib
import hmac
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

BUCKET = "estimator-tests"
#: The public credentials of Azurite, from its documentation.
AZURITE_ACCOUNT = "devstoreaccount1"
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
S3_KEYS = {
    "AWS_ACCESS_KEY_ID": "not-a-key-id",
    "AWS_SECRET_ACCESS_KEY": "a-secret-of-the-tests",
    "AWS_REGION": "us-east-1",
}


def free_port() -> int:
    """Returns a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


@contextlib.contextmanager
def running(
    command: list[str], port: int, folder: Path, *, cwd: str | None = None, env: Mapping[str, str] | None = None
) -> Generator[tuple[str, int]]:
    """Runs a server in its own process group, from the time when it listens until the block ends."""
    with open(folder / "server.log", "wb") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, cwd=cwd, env={**os.environ, **(env or {})}, start_new_session=True
        )
    try:
        deadline = time.monotonic() + 60
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            text = (folder / "server.log").read_text(errors="replace")
            assert process.poll() is None, f"{command[0]} ended: {text[-2000:]}"
            assert time.monotonic() < deadline, f"{command[0]} does not listen: {text[-2000:]}"
            time.sleep(0.1)
        yield "127.0.0.1", port
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 15)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()


@contextlib.contextmanager
def s3_server(folder: Path) -> Generator[tuple[str, int]]:
    """Runs the server of moto, which here performs one write at a time."""
    pytest.importorskip("moto", reason="S3 is tested with moto: pip install 'moto[server]'")
    port = free_port()
    command = [sys.executable, str(Path(__file__).with_name("moto_in_order.py")), str(port)]
    with running(command, port, folder) as address:
        yield address


def s3_client() -> Any:
    """Returns the client of boto3, which accesses a bucket without the storage."""
    return pytest.importorskip("boto3", reason="tests look into S3 with boto3").client("s3")


@contextlib.contextmanager
def azure_server(folder: Path) -> Generator[tuple[str, int]]:
    """Runs the server of Azurite, from the folder AZURITE (with `npm install azurite`) or from the path."""
    named = os.environ.get("AZURITE", "")
    found = shutil.which("azurite-blob", path=str(Path(named, "node_modules", ".bin")) if named else None)
    if found is None:
        pytest.skip("Azure is tested with azurite: npm install azurite, and AZURITE=<the folder>")
    port = free_port()
    options = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--inMemoryPersistence", "--skipApiVersionCheck"]
    with running([found, *options, "--silent", "--disableTelemetry"], port, folder, cwd=str(folder)) as address:
        yield address


@contextlib.contextmanager
def gcs_server(folder: Path) -> Generator[tuple[str, int]]:
    """Runs Google's testbench from the folder STORAGE_TESTBENCH with the interpreter STORAGE_TESTBENCH_PYTHON."""
    pytest.importorskip("google.cloud.storage", reason="GCS needs google-cloud-storage: the extra gcs")
    bench, python = os.environ.get("STORAGE_TESTBENCH", ""), os.environ.get("STORAGE_TESTBENCH_PYTHON", "")
    if not (bench and python):
        pytest.skip(
            "GCS is tested with googleapis/storage-testbench: STORAGE_TESTBENCH=<its folder>, and "
            "STORAGE_TESTBENCH_PYTHON=<a Python that has its requirements>; the nox session object_stores makes one"
        )
    port = free_port()
    env = {"PATH": f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [python, "testbench_run.py", "127.0.0.1", str(port), "8"]
    with running(command, port, folder, cwd=bench, env={**env, "PYTHONPATH": bench}) as address:
        yield address


def ask(url: str, method: str, *, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
    """Sends one request. The result is empty for an answer of 404 or 409."""
    request = urllib.request.Request(url, data=body or None, method=method, headers=dict(headers or {}))
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        with error:
            if error.code not in (404, 409):
                raise
            return b""


def azure_headers(method: str, path: str, query: Mapping[str, str]) -> dict[str, str]:
    """Returns the headers that sign a request without a body to azurite."""
    now = datetime.datetime.now(datetime.UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    resource = "".join(f"\n{name}:{value}" for name, value in sorted(query.items()))
    text = f"{method}{chr(10) * 12}x-ms-date:{now}\nx-ms-version:2021-08-06\n/{AZURITE_ACCOUNT}{path}{resource}"
    signed = hmac.new(base64.b64decode(AZURITE_KEY), text.encode(), hashlib.sha256).digest()
    return {
        "x-ms-date": now,
        "x-ms-version": "2021-08-06",
        "Authorization": f"SharedKey {AZURITE_ACCOUNT}:{base64.b64encode(signed).decode()}",
    }


def azure_container(address: tuple[str, int], name: str, method: str) -> None:
    """Makes (`PUT`) or removes (`DELETE`) a container."""
    path, query = f"/{AZURITE_ACCOUNT}/{name}", {"restype": "container"}
    ask(f"http://{address[0]}:{address[1]}{path}?restype=container", method, headers=azure_headers(method, path, query))


def gcs_bucket(address: tuple[str, int], name: str) -> None:
    """Makes a bucket."""
    url = f"http://{address[0]}:{address[1]}/storage/v1/b?project=none"
    ask(url, "POST", body=json.dumps({"name": name}).encode(), headers={"Content-Type": "application/json"})
