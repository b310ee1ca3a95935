"""A server of plain asyncio that only answers. Its delays are the delays of the machine.

`python bare.py` prints its port; it ends with its standard input.
"""

import asyncio
import sys

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


async def answer(reader, writer):
    try:
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(ANSWER)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
