"""Reads the body of a request, within limits of size, time and memory."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from estimator_exporters.serving.budget import Lease
from estimator_exporters.serving.refusals import BadRequestError, TooLargeError, TooSlowError, UnsupportedError

_STEP, _PIECE = 2**16, 2**20  # the numbers of bytes that are read and inflated at a time


class ClientGoneError(Exception):
    """The client closed the connection before it had sent its request.

    Attributes:
        status: the status that metrics count. No client receives it.
    """

    status = 499


async def read_body(
    receive: Callable[[], Awaitable[Mapping[str, Any]]],
    length: str | None,
    *,
    limit: int,
    seconds: float,
    lease: Lease,
) -> bytes | bytearray:
    """Returns the whole body.

    Args:
        receive: returns the ASGI messages with the pieces of the body.
        length: the Content-Length header, or None if it was not sent.
        limit: the largest size in bytes.
        seconds: the time limit for the whole body.
        lease: the lease that is charged as the body arrives. An announced body therefore holds no memory.

    Raises:
        TooLargeError, TooSlowError, FullError: the body exceeds a limit.
        ClientGoneError: the client has disconnected.
    """
    if length is not None and length.isascii() and length.isdigit() and (len(length) > 18 or int(length) > limit):
        raise TooLargeError(f"the body has {length} bytes; this server accepts {limit}")
    first: bytes = b""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGoneError
                piece: bytes = message.get("body", b"")
                if len(body) + len(piece) > limit:
                    raise TooLargeError(f"the body has more than {limit} bytes")
                lease.grow(len(piece))
                more = message.get("more_body", False)
                if not more and not body:
                    first = piece
                else:
                    body += piece
    except TimeoutError as error:
        raise TooSlowError(f"the body did not arrive within {seconds:g} s") from error
    return first or body


def inflated(body: bytes | bytearray, encoding: str | None, *, limit: int, lease: Lease) -> bytes | bytearray:
    """Returns the body without its content encoding: gzip, deflate or none.

    Raises:
        UnsupportedError, BadRequestError: the encoding is not supported, or the data is damaged.
        TooLargeError, FullError: the inflated body exceeds a limit. It is not kept.
    """
    name = (encoding or "identity").strip().lower()
    if name == "identity":
        return body
    if name not in ("gzip", "deflate"):
        raise UnsupportedError(f"content-encoding {name!r} is not supported; send gzip, deflate or none")
    decoder = zlib.decompressobj(zlib.MAX_WBITS | (16 if name == "gzip" else 0))
    found, given = bytearray(), memoryview(body)
    try:
        for start in range(0, len(given), _STEP):
            rest = bytes(given[start : start + _STEP])
            while rest and not decoder.eof:
                piece = decoder.decompress(rest, _PIECE)  # other threads run between the pieces
                rest = decoder.unconsumed_tail
                if len(found) + len(piece) > limit:
                    raise TooLargeError(f"the body has more than {limit} bytes once decompressed")
                lease.grow(len(piece))
                found += piece
    except zlib.error as error:
        raise BadRequestError(f"the body is not valid {name}: {error}") from error
    if not decoder.eof:
        raise BadRequestError(f"the body is incomplete: its {name} data ends too early")
    return found
