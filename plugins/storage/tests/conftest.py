"""Starts one server of each kind for all tests that need it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from plugins.storage.tests import emulators


@pytest.fixture(scope="session")
def s3_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    with emulators.s3_server(tmp_path_factory.mktemp("moto")) as address:
        yield address


@pytest.fixture
def s3(s3_address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> tuple[str, int]:
    """The address of the server. The environment points to it, as to any store other than Amazon's."""
    for name, value in emulators.S3_KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://{}:{}".format(*s3_address))
    return s3_address


@pytest.fixture(scope="session")
def azure_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    with emulators.azure_server(tmp_path_factory.mktemp("azurite")) as address:
        yield address


@pytest.fixture
def azure(azure_address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> tuple[str, int]:
    """The address of the server, to which the environment points."""
    host, port = azure_address
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", emulators.AZURITE_ACCOUNT)
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", emulators.AZURITE_KEY)
    monkeypatch.setenv("AZURE_STORAGE_ENDPOINT", f"http://{host}:{port}/{emulators.AZURITE_ACCOUNT}")
    return azure_address


@pytest.fixture(scope="session")
def gcs_address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    with emulators.gcs_server(tmp_path_factory.mktemp("testbench")) as address:
        yield address


@pytest.fixture
def gcs(gcs_address: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> tuple[str, int]:
    """The address of the server, to which the environment points."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://{}:{}".format(*gcs_address))
    return gcs_address
