"""The body of a request, within limits of size, time and memory."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from estimator_exporters.serving.budget import Lease
from estimator_exporters.serving.refusals import BadRequestError, TooLargeError, TooSlowError, UnsupportedError

_STEP, _PIECE = 2**16, 2**20  # bytes read and inflated at a time


class ClientGoneError(Exception):
    """The client closed the connection before it had sent its request.

    Attributes:
        status: what metrics count; nobody receives it.
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
    """The whole body.

    Args:
        receive: returns the ASGI messages with its pieces.
        length: the Content-Length header.
        limit: greatest size in bytes.
        seconds: to wait for all of it.
        lease: is charged for it as it arrives, so that an announced body holds no memory.

    Raises:
        TooLargeError, TooSlowError, FullError: it is past a limit.
        ClientGoneError: no client waits for an answer.
    """
    if length is not None and length.isascii() and length.isdigit() and (len(length) > 18 or int(length) > limit):
        raise TooLargeError(f"the body has {length} bytes; this server takes {limit}")
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
        raise TooSlowError(f"the body did not come within {seconds:g} s") from error
    return first or body


def inflated(body: bytes | bytearray, encoding: str | None, *, limit: int, lease: Lease) -> bytes | bytearray:
    """The body without its content encoding: gzip, deflate or none.

    Raises:
        UnsupportedError, BadRequestError: another encoding, or damaged data.
        TooLargeError, FullError: it inflates to more than is allowed; it is not kept then.
    """
    name = (encoding or "identity").strip().lower()
    if name == "identity":
        return body
    if name not in ("gzip", "deflate"):
        raise UnsupportedError(f"content-encoding {name!r} is not read; send gzip, deflate or none")
    decoder = zlib.decompressobj(zlib.MAX_WBITS | (16 if name == "gzip" else 0))
    found, given = bytearray(), memoryview(body)
    try:
        for start in range(0, len(given), _STEP):
            rest = bytes(given[start : start + _STEP])
            while rest and not decoder.eof:
                piece = decoder.decompress(rest, _PIECE)  # lets other threads run meanwhile
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
