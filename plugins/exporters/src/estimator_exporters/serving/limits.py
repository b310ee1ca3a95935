"""What a server takes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a server takes.

    Attributes:
        body_bytes: greatest body of a request.
        body_seconds: time for a client to send it, and for the head of a request.
        head_bytes: greatest head of a request.
        under_way: inference requests at a time; more are answered 503.
        poll_seconds: between two looks for new exports.
    """

    body_bytes: int = 64 * 2**20
    body_seconds: float = 30.0
    head_bytes: int = 64 * 2**10
    under_way: int = 256
    poll_seconds: float = 2.0
