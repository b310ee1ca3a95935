"""Access rules for models: bearer tokens from a file, each with its own rights."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from estimator_core.errors import ArgumentError
from estimator_exporters.serving.changes import changes
from estimator_exporters.serving.refusals import ForbiddenError, UnauthorizedError

# Raises if the sender of an `Authorization` header may not use a model. "" means a page that belongs to no model.
Access = Callable[[str | None, str], None]
_FIELDS = {"token", "models"}
_log = logging.getLogger("estimator_exporters")


def everybody(authorization: str | None, model: str) -> None:
    """Allows every request that reaches the server."""


@dataclass(frozen=True, kw_only=True)
class Right:
    """The models that a token allows.

    Attributes:
        digest: the SHA-256 digest of the token. Messages cannot leak the token, because it is not stored.
        models: shell patterns of model names, such as `"spam*"`.
    """

    digest: bytes
    models: Sequence[str]


def access_from(path: Path) -> Access:
    """Returns the access rule of a file of tokens.

    The file is a JSON list of `{"token": "...", "models": ["spam*", ...]}`. A token without "models" allows every
    model. Pages that belong to no model (`/metrics`, lists of models) accept every token of the file. Health pages are
    public.

    Args:
        path: the path of the file.

    Raises:
        ArgumentError: the file cannot be read, other users may read it, or it is not such a list.
    """
    try:
        others = path.stat().st_mode & 0o007
        content = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ArgumentError(f"The file of tokens {path} cannot be read: {error}.") from error
    if others:
        raise ArgumentError(f"Every user of this machine may read the tokens in {path}. Run: chmod o= {path}")
    if not isinstance(content, list) or not content or not all(_is_right(entry) for entry in content):
        raise ArgumentError(
            f'{path} must hold a JSON list of {{"token": "at least 16 characters", "models": ["name", ...]}}.'
        )
    rights = [Right(digest=_digest(entry["token"]), models=entry.get("models", ["*"])) for entry in content]
    return access_of(rights)


def renewed_access(path: Path) -> tuple[Access, Callable[[], None]]:
    """Returns the access rule of a file of tokens, and a function that applies the current content of the file.

    If the file is missing or is no longer a list of tokens, the previous tokens stay valid.

    Raises:
        ArgumentError: the same conditions as in `access_from`.
    """
    changed = changes([path])
    current = access_from(path)

    def check(authorization: str | None, model: str) -> None:
        current(authorization, model)

    def renew() -> None:
        nonlocal current
        if not changed():
            return
        try:
            current = access_from(path)
        except ArgumentError as error:
            _log.error("%s The previous tokens stay valid", error)
        else:
            _log.info("The server now uses the tokens in %s", path)

    return check, renew


def access_of(rights: Sequence[Right]) -> Access:
    """Returns the access rule of some rights."""

    def check(authorization: str | None, model: str) -> None:
        kind, _, token = (authorization or "").partition(" ")
        if kind.lower() != "bearer" or not token:
            raise UnauthorizedError("this server requires a token: Authorization: Bearer TOKEN")
        digest = _digest(token.strip())
        found = [right for right in rights if hmac.compare_digest(right.digest, digest)]
        if not found:
            raise UnauthorizedError("the token is unknown")
        own = model.partition(":")[0]
        if model and not any(fnmatchcase(own, pattern) for right in found for pattern in right.models):
            raise ForbiddenError("the token does not permit this model")

    return check


def check_reachable(host: str, *, protected: bool, insecure: bool) -> None:
    """Prevents a server that is unintentionally open to other machines.

    Args:
        host: the address to listen on.
        protected: whether clients must show a token or a certificate.
        insecure: whether the user allowed access without authentication.

    Raises:
        ArgumentError: other machines could use the server, and the user did not allow it.
    """
    if protected or insecure or _is_local(host):
        return
    raise ArgumentError(
        f"With --host {host} other machines could use this server, without authentication. Give --tokens FILE, "
        "or --tls-client-ca FILE with --tls-cert and --tls-key; or pass --allow-anyone, for example behind a proxy."
    )


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_right(entry: object) -> bool:
    if not isinstance(entry, Mapping) or not {"token"} <= entry.keys() <= _FIELDS:
        return False
    models = entry.get("models", [])
    token = entry["token"]
    return (
        isinstance(token, str)
        and len(token) >= 16
        and isinstance(models, list)
        and all(isinstance(model, str) for model in models)
    )


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
