"""S3, and stores that use the same protocol."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from obstore.exceptions import BaseError
from obstore.store import S3Store

from estimator_core.errors import ArgumentError
from estimator_storage.locations import parse
from estimator_storage.over_obstore import ObstoreStorage, Permissions
from estimator_storage.store_errors import one_line

_PERMISSIONS = Permissions(
    # Without the permission to list, S3 refuses to read a missing object instead of reporting that it is missing.
    read="s3:GetObject (and s3:ListBucket, without which S3 also denies access to missing objects)",
    write="s3:PutObject",
    list="s3:ListBucket",
    delete="s3:DeleteObject",
)
#: The variables that boto3 reads, first to last.
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
#: If any of these is set, obstore finds the credentials itself.
_GIVEN = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
)


def open_s3(url: str, *, options: Mapping[str, Any]) -> ObstoreStorage:
    """Returns the storage at `s3://bucket/prefix`.

    Credentials come from the sources of AWS: environment, profiles of `~/.aws` (with boto3 installed), web identity,
    containers, instance metadata. `AWS_REGION` sets the region.

    Args:
        url: the bucket and the prefix.
        options: the options of the plugin. `s3_endpoint` has priority over `AWS_ENDPOINT_URL_S3` and
            `AWS_ENDPOINT_URL`.

    Raises:
        ArgumentError: the URL or the settings cannot be used.
    """
    location = parse(url)
    endpoint = options.get("s3_endpoint") or next((os.environ[one] for one in _ENDPOINTS if os.environ.get(one)), "")
    settings: dict[str, Any] = {"prefix": location.prefix or None, **_profile()}
    if endpoint:
        settings["aws_endpoint_url_s3"] = endpoint

    def build(**how: Any) -> S3Store:
        try:
            return S3Store(location.bucket, **settings, **how)
        except (BaseError, ValueError) as error:
            raise ArgumentError(
                f"{location.url}: S3 cannot be used with these settings: {one_line(str(error))}"
            ) from None

    return ObstoreStorage(location.url, build, _PERMISSIONS, insecure=endpoint.startswith("http://"))


def _profile() -> dict[str, Any]:
    """Returns credentials of `~/.aws`, which boto3 reads, if the environment has none.

    Raises:
        ArgumentError: a profile is named, but boto3 is not installed or does not find it.
    """
    named = os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE")
    files = (os.environ.get("AWS_SHARED_CREDENTIALS_FILE"), os.environ.get("AWS_CONFIG_FILE"))
    there = any(Path(file or home).expanduser().exists() for file, home in zip(files, _FILES, strict=True))
    if not named and (any(os.environ.get(one) for one in _GIVEN) or not there):
        return {}
    try:
        import boto3  # pyright: ignore[reportMissingImports]
        from botocore.exceptions import BotoCoreError  # pyright: ignore[reportMissingImports]
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ModuleNotFoundError:
        if named:
            raise ArgumentError(
                f"AWS_PROFILE is {named!r}, and boto3 reads profiles: pip install 'estimator-storage[profiles]'."
            ) from None
        return {}
    try:
        return {"credential_provider": Boto3CredentialProvider(boto3.Session())}
    except (BotoCoreError, ValueError) as error:
        if named:
            raise ArgumentError(f"the profile {named!r} of AWS cannot be used: {one_line(str(error))}") from None
        return {}


_FILES = ("~/.aws/credentials", "~/.aws/config")
