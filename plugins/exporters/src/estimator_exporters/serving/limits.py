"""The limits on the size and number of requests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits on the size and number of requests.

    Attributes:
        memory_bytes: the bytes that all connections and requests together may hold. Further requests get 429, or 413 if
            one request alone would exceed the limit.
        body_bytes: the largest size of a request body in bytes, also after it is inflated.
        body_seconds: the time that a client has to send a head or a body, or to read more of its answer.
        head_bytes: the largest size of a request head in bytes. Trailers and the sizes of chunks have the same limit.
        values: the largest number of values in the JSON of a request, and of strings in a binary tensor.
        under_way: the largest number of concurrent inference requests. Further requests get 503.
        poll_seconds: the seconds between two checks for new exports.
    """

    memory_bytes: int = 2**30
    body_bytes: int = 64 * 2**20
    body_seconds: float = 30.0
    head_bytes: int = 64 * 2**10
    values: int = 2**23
    under_way: int = 256
    poll_seconds: float = 2.0
