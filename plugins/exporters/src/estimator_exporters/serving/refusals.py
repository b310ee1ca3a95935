"""What a server answers instead of a result."""

from __future__ import annotations


class RefusedError(Exception):
    """A request that is not served; `status` is the HTTP status code, the message goes to the client."""

    status = 500


class BadRequestError(RefusedError):
    """The request is wrong."""

    status = 400


class NotFoundError(RefusedError):
    """There is no such model or version."""

    status = 404


class TooSlowError(RefusedError):
    """The client did not send its body in time."""

    status = 408


class TooLargeError(RefusedError):
    """The body is larger than the server takes."""

    status = 413


class UnsupportedError(RefusedError):
    """A content encoding the server does not read."""

    status = 415


class BusyError(RefusedError):
    """More requests are under way than the server takes."""

    status = 503
