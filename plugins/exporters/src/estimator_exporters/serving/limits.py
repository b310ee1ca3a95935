"""What a server takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a server takes.

    Attributes:
        memory_bytes: what all connections and requests together may hold; more is answered 429, or 413 where one
            request alone would hold more.
        body_bytes: greatest body of a request, also once it is inflated.
        body_seconds: time for a client to send it, and for the head of a request; and to take more of its answer.
        head_bytes: greatest head of a request; trailers and the sizes of chunks have the same limit.
        values: greatest number of values in the JSON of a request, and of strings in a binary tensor.
        under_way: inference requests at a time; more are answered 503.
        poll_seconds: between two looks for new exports.
    """

    memory_bytes: int = 2**30
    body_bytes: int = 64 * 2**20
    body_seconds: float = 30.0
    head_bytes: int = 64 * 2**10
    values: int = 2**23
    under_way: int = 256
    poll_seconds: float = 2.0
