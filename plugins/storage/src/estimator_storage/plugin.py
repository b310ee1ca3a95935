"""The declarations of estimator-storage for estimator-core. They are imported at start-up, so keep it light."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core.plugins import Command, Component, Option

ESTIMATOR_PLUGIN_API = (1, 0)

_STORAGES = {
    "s3": ("s3:open_s3", "Amazon S3 and compatible stores."),
    "az": ("azure:open_azure", "Azure Blob Storage."),
    "abfs": ("azure:open_azure", "Azure Blob Storage, by the name of its file system."),
    "abfss": ("azure:open_azure", "Azure Blob Storage, by the name of its file system over TLS."),
    "gs": ("gcs:open_gcs", "Google Cloud Storage."),
}


def estimator_components() -> Sequence[Component]:
    """Returns one storage for each scheme. The client of a store is imported when its scheme is used."""
    return [
        Component(kind="storage", name=scheme, target=f"estimator_storage.{target}", summary=summary)
        for scheme, (target, summary) in _STORAGES.items()
    ]


def estimator_options() -> Sequence[Option]:
    """Returns the options for servers. Credentials come from the sources of each provider, never from an option."""
    return [
        Option(name=f"{store}_endpoint", type=str, default="", help=f"URL of the server of {title}.")
        for store, title in (("s3", "S3"), ("azure", "Azure Blob Storage"), ("gcs", "Google Cloud Storage"))
    ]


def estimator_commands() -> Sequence[Command]:
    """Returns the command `estimator storage doctor URL`."""
    return [
        Command(
            name="storage",
            target="estimator_storage.cli.storage",
            summary="Examine a bucket, container or directory: `storage doctor URL`.",
        )
    ]
