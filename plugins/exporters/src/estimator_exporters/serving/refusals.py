"""What a server answers instead of a result."""

from __future__ import annotations

import json
from collections.abc import Mapping

_JSON: Mapping[str, str] = {"content-type": "application/json"}
_LATER = {**_JSON, "retry-after": "1"}


def explained(message: str) -> bytes:
    """The body of an answer without a result."""
    return json.dumps({"error": message}).encode()


class RefusedError(Exception):
    """A request that is not served; the message goes to the client.

    Attributes:
        status: the HTTP status code.
        headers: of the answer.
    """

    status = 500
    headers: Mapping[str, str] = _JSON


class BadRequestError(RefusedError):
    """The request is wrong."""

    status = 400


class UnauthorizedError(RefusedError):
    """The client has not said who it is."""

    status = 401
    headers: Mapping[str, str] = {**_JSON, "www-authenticate": "Bearer"}


class ForbiddenError(RefusedError):
    """The client may not use this model."""

    status = 403


class NotFoundError(RefusedError):
    """There is no such model or version."""

    status = 404


class TooSlowError(RefusedError):
    """The client did not send its body in time."""

    status = 408
    headers: Mapping[str, str] = {**_JSON, "connection": "close"}


class TooLargeError(RefusedError):
    """The request is too large. The rest of its body is read and dropped: only then do clients read the answer."""

    status = 413


class UnsupportedError(RefusedError):
    """A content encoding the server does not read."""

    status = 415


class FullError(RefusedError):
    """The request does not fit beside the others now."""

    status = 429
    headers = _LATER


class BusyError(RefusedError):
    """More requests are under way than the server takes."""

    status = 503
    headers = _LATER
