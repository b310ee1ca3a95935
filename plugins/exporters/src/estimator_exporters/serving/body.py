"""The body of a request, within limits of size and time."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from estimator_exporters.serving.refusals import BadRequestError, TooLargeError, TooSlowError, UnsupportedError


class ClientGoneError(Exception):
    """The client closed the connection before it had sent its request."""


async def read_body(
    receive: Callable[[], Awaitable[Mapping[str, Any]]], length: str | None, *, limit: int, seconds: float
) -> bytes:
    """The whole body.

    Args:
        receive: gives the ASGI messages with its pieces.
        length: the Content-Length header.
        limit: greatest size in bytes.
        seconds: to wait for all of it.

    Raises:
        TooLargeError, TooSlowError: it is past a limit.
        ClientGoneError: there is nobody to answer.
    """
    if length is not None and length.isascii() and length.isdigit() and (len(length) > 18 or int(length) > limit):
        raise TooLargeError(f"the body has {length} bytes; this server takes {limit}")
    pieces: list[bytes] = []
    total = 0
    try:
        async with asyncio.timeout(seconds):
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGoneError
                pieces.append(message.get("body", b""))
                total += len(pieces[-1])
                if total > limit:
                    raise TooLargeError(f"the body has more than {limit} bytes")
                more = message.get("more_body", False)
    except TimeoutError as error:
        raise TooSlowError(f"the body did not come within {seconds:g} s") from error
    return b"".join(pieces)


def decompressed(body: bytes, encoding: str | None, *, limit: int) -> bytes:
    """The body without its content encoding: gzip, deflate or none.

    Raises:
        UnsupportedError, BadRequestError, TooLargeError: another encoding, damaged data, or too much of them.
    """
    name = (encoding or "identity").strip().lower()
    if name == "identity":
        return body
    if name not in ("gzip", "deflate"):
        raise UnsupportedError(f"content-encoding {name!r} is not read; send gzip, deflate or none")
    try:
        decoder = zlib.decompressobj(zlib.MAX_WBITS | (16 if name == "gzip" else 0))
        found = decoder.decompress(body, limit + 1)
    except zlib.error as error:
        raise BadRequestError(f"the body is no {name}: {error}") from error
    if len(found) > limit:
        raise TooLargeError(f"the body has more than {limit} bytes once decompressed")
    if not decoder.eof:
        raise BadRequestError(f"the body is no complete {name}")
    return found
