"""Tests of the choice of an Azure account from its different names."""

import pytest

from estimator_core.errors import ArgumentError
from estimator_storage import open_azure
from plugins.storage.tests import emulators


def test_an_account_is_needed_for_azure(monkeypatch):
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_CONNECTION_STRING"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ArgumentError, match="AZURE_STORAGE_ACCOUNT_NAME"):
        open_azure("az://container/run", options={})


@pytest.mark.parametrize("how", ["connection string", "names of az"])
def test_other_names_of_azure(azure, monkeypatch, how):
    host, port = azure
    emulators.azure_container(azure, "by-name", "PUT")
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ENDPOINT"):
        monkeypatch.delenv(name)
    endpoint = f"http://{host}:{port}/{emulators.AZURITE_ACCOUNT}"
    if how == "names of az":
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", emulators.AZURITE_ACCOUNT)
        monkeypatch.setenv("AZURE_STORAGE_KEY", emulators.AZURITE_KEY)
        monkeypatch.setenv("AZURE_ENDPOINT", endpoint)
    else:
        parts = f"AccountName={emulators.AZURITE_ACCOUNT};AccountKey={emulators.AZURITE_KEY};BlobEndpoint={endpoint}"
        monkeypatch.setenv("AZURE_STORAGE_CONNECTION_STRING", f"DefaultEndpointsProtocol=http;{parts};")
    storage = open_azure("az://by-name/run", options={})
    storage.put(how, b"x")
    assert storage.get(how) == b"x"
