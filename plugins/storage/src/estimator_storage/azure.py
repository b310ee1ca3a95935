"""Azure Blob Storage."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from obstore.exceptions import BaseError
from obstore.store import AzureStore

from estimator_core.errors import ArgumentError
from estimator_storage.locations import parse
from estimator_storage.over_obstore import ObstoreStorage, Permissions
from estimator_storage.store_errors import one_line

_ROLE = "the role Storage Blob Data Contributor, or the right to {} in the shared access signature"
_PERMISSIONS = Permissions(
    read=_ROLE.format("read"),
    write=_ROLE.format("create and write"),
    list=_ROLE.format("list"),
    delete=_ROLE.format("delete"),
)
_ENDPOINTS = ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT")
#: The parts of a connection string, and the settings for them.
_CONNECTION = {
    "AccountName": "account_name",
    "AccountKey": "account_key",
    "BlobEndpoint": "endpoint",
    "SharedAccessSignature": "sas_key",
}
#: The names that the command `az` uses and obstore does not read.
_OF_AZ = {"AZURE_STORAGE_ACCOUNT": "account_name", "AZURE_STORAGE_KEY": "account_key"}


def open_azure(url: str, *, options: Mapping[str, Any]) -> ObstoreStorage:
    """Returns the storage at `az://container/prefix` or `abfss://container@account.dfs.core.windows.net/prefix`.

    Credentials come from the sources of Azure: `AZURE_STORAGE_ACCOUNT_NAME` with a key, a shared access signature or a
    connection string, a service principal, workload identity, managed identity, `AZURE_USE_AZURE_CLI=true`.

    Args:
        url: the container and the prefix.
        options: the options of the plugin. `azure_endpoint` has priority over `AZURE_STORAGE_ENDPOINT`.

    Raises:
        ArgumentError: the URL or the settings cannot be used, for example because the account is missing.
    """
    location = parse(url)
    settings: dict[str, Any] = _of_environment()
    if location.account:
        settings["account_name"] = location.account
    if options.get("azure_endpoint"):
        settings["endpoint"] = options["azure_endpoint"]

    def build(**how: Any) -> AzureStore:
        try:
            return AzureStore(location.bucket, prefix=location.prefix or None, **settings, **how)
        except (BaseError, ValueError) as error:
            raise ArgumentError(
                f"{location.url}: Azure cannot be used with these settings: {one_line(str(error))}. The account is "
                "named by AZURE_STORAGE_ACCOUNT_NAME or by abfss://container@account.dfs.core.windows.net/prefix."
            ) from None

    insecure = str(settings.get("endpoint", "")).startswith("http://")
    return ObstoreStorage(location.url, build, _PERMISSIONS, insecure=insecure)


def _of_environment() -> dict[str, Any]:
    """Returns the settings in the environment that obstore does not read itself, and the endpoint, which decides on
    TLS.
    """
    found = {ours: os.environ[name] for name, ours in _OF_AZ.items() if os.environ.get(name)}
    if endpoint := next((os.environ[one] for one in _ENDPOINTS if os.environ.get(one)), ""):
        found["endpoint"] = endpoint
    for part in os.environ.get("AZURE_STORAGE_CONNECTION_STRING", "").split(";"):
        name, _, value = part.partition("=")
        if name in _CONNECTION:
            found[_CONNECTION[name]] = value
    return found
