"""Parses URLs of object stores into scheme, bucket and prefix. URLs must not contain secrets."""

from __future__ import annotations

import re
from dataclasses import dataclass

from estimator_core.errors import ArgumentError
from estimator_core.storage import check_key

#: Names in a bucket have at most 1,024 bytes: 900 for a key, and one for the `/` before it.
_LONGEST_PREFIX = 123
#: The allowed characters, because clients fail on addresses with others. `$` occurs in `$web` of Azure.
_CONTAINER = re.compile(r"[A-Za-z0-9._$-]+")


@dataclass(frozen=True, kw_only=True)
class Location:
    """A place in an object store.

    Args:
        url: the URL as users write it, without a `/` at the end.
        bucket: the bucket or container.
        prefix: the prefix of the names of all objects there; empty for the whole bucket.
        account: the account of Azure, if the URL names it.
    """

    url: str
    bucket: str
    prefix: str
    account: str = ""


def parse(url: str) -> Location:
    """Returns the parts of a URL.

    Args:
        url: `scheme://bucket/prefix`. For Azure also `abfss://container@account.dfs.core.windows.net/prefix`.

    Raises:
        ArgumentError: it has no bucket, an invalid prefix, or a part that looks like credentials. The message does not
            repeat credentials.

    Example:
        >>> parse("s3://models/digits/run-1/").prefix
        'digits/run-1'
    """
    scheme, _, rest = url.partition("://")
    bucket, _, prefix = rest.partition("/")
    form = f"{scheme}://bucket/prefix"
    if any(sign in url for sign in "?#"):
        raise ArgumentError(f"a URL {form} must not contain '?' or '#'. Set keys and tokens in the environment.")
    container, at, host = bucket.partition("@")
    account, dot, domain = host.partition(".")
    if at and not (scheme.lower().startswith("abfs") and dot and domain.startswith(("dfs.", "blob."))):
        raise ArgumentError(f"a URL {form} must not contain '@'. Set user names and keys in the environment.")
    if not _CONTAINER.fullmatch(container) or ":" in bucket:
        told = f"a URL of this store has the form {form}; this one has the bucket {container!r}."
        raise ArgumentError(f"{told} A bucket name has letters, digits, '.', '-' and '_'.")
    prefix = prefix.rstrip("/")
    if prefix:
        check_key(prefix)
    if len(prefix.encode()) > _LONGEST_PREFIX:
        raise ArgumentError(
            f"the prefix of {form} has {len(prefix.encode())} bytes; at most {_LONGEST_PREFIX} are allowed."
        )
    clean = f"{scheme.lower()}://{bucket}" + (f"/{prefix}" if prefix else "")
    return Location(url=clean, bucket=container, prefix=prefix, account=account)
