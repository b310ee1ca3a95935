"""The errors that a server answers instead of a result."""

from __future__ import annotations

import json
from collections.abc import Mapping

_JSON: Mapping[str, str] = {"content-type": "application/json"}
_LATER = {**_JSON, "retry-after": "1"}


def explained(message: str) -> bytes:
    """Returns the body of an answer without a result."""
    return json.dumps({"error": message}).encode()


class RefusedError(Exception):
    """A request that is not served. The client receives the message.

    Attributes:
        status: the HTTP status code.
        headers: the headers of the answer.
    """

    status = 500
    headers: Mapping[str, str] = _JSON


class BadRequestError(RefusedError):
    """The request is wrong."""

    status = 400


class UnauthorizedError(RefusedError):
    """The client has not authenticated."""

    status = 401
    headers: Mapping[str, str] = {**_JSON, "www-authenticate": "Bearer"}


class ForbiddenError(RefusedError):
    """The client may not use this model."""

    status = 403


class NotFoundError(RefusedError):
    """There is no such model or version."""

    status = 404


class TooSlowError(RefusedError):
    """The client did not send its body within the time limit."""

    status = 408
    headers: Mapping[str, str] = {**_JSON, "connection": "close"}


class TooLargeError(RefusedError):
    """The request is too large.

    The rest of its body is read and dropped, because clients read the answer only after that.
    """

    status = 413


class UnsupportedError(RefusedError):
    """The server does not support the content encoding."""

    status = 415


class FullError(RefusedError):
    """The request does not fit into the memory that other requests leave at present."""

    status = 429
    headers = _LATER


class BusyError(RefusedError):
    """More requests are in progress than the server allows."""

    status = 503
    headers = _LATER
