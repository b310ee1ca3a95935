"""A proxy in front of an emulator that holds bytes in either direction, as a network does that pauses."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Generator


class PausingProxy:
    """Forwards bytes unless it holds them. Its methods may be called from any thread.

    Args:
        server: the address of the emulator.

    Attributes:
        url: the URL of the proxy.
        held: set as soon as bytes have been held since the last call of `hold`.
    """

    def __init__(self, server: tuple[str, int]) -> None:
        self.url = ""
        self.held = threading.Event()
        self._server = server
        self._loop = asyncio.new_event_loop()
        self._open = {"requests": asyncio.Event(), "answers": asyncio.Event()}
        for one in self._open.values():
            one.set()

    def hold(self, direction: str) -> None:
        """Holds "requests" or "answers" from now on."""
        self.held.clear()
        self._call(self._open[direction].clear)

    def release(self) -> None:
        """Forwards the held bytes, and everything after them."""
        for one in self._open.values():
            self._call(one.set)

    @contextlib.contextmanager
    def running(self) -> Generator[None]:
        """Listens during the block."""
        asyncio_server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop)
        thread = threading.Thread(target=self._loop.run_forever)
        thread.start()
        try:
            server = asyncio_server.result(30)
            self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            yield
        finally:
            self.release()
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(30)
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join()
            self._loop.close()

    def _call(self, method) -> None:
        done = threading.Event()
        self._loop.call_soon_threadsafe(lambda: (method(), done.set()))
        assert done.wait(30)

    async def _listen(self) -> asyncio.Server:
        self._listening = await asyncio.start_server(self._connection, "127.0.0.1", 0)
        return self._listening

    async def _end(self) -> None:
        self._listening.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection(*self._server)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await asyncio.gather(self._pass("requests", reader, to_server), self._pass("answers", from_server, writer))

    async def _pass(self, direction: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                if not self._open[direction].is_set():
                    self.held.set()
                    await self._open[direction].wait()
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()
