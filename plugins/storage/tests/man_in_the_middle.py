"""A server in front of an emulator. It ignores conditions, as some stores and proxies do, or answers from a script."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_OF_THE_CONNECTION = ("connection", "transfer-encoding", "content-length", "date", "server")

#: The answer to a request that the server executes, but whose answer does not arrive.
LOST = (0, "InternalError", "The answer was lost.")


class Middle:
    """The settings and the record of the server in the middle.

    Attributes:
        url: the URL of the server.
        script: the answers to the next requests, as (status, code, message). None or an empty script forwards the
            request. LOST forwards it, and answers 500 instead of the answer.
        seen: the method and path of each request.
        is_deaf: whether the condition of a request is removed.
    """

    def __init__(self) -> None:
        self.url = ""
        self.script: list[tuple[int, str, str] | None] = []
        self.seen: list[tuple[str, str]] = []
        self.is_deaf = False


@contextlib.contextmanager
def man_in_the_middle(server: tuple[str, int]) -> Generator[Middle]:
    """Runs a server in front of an S3 server."""
    middle = Middle()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _work(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            middle.seen.append((self.command, self.path))
            scripted = middle.script.pop(0) if middle.script else None
            if scripted is None:
                self._pass_on(body)
            else:
                status, code, message = scripted
                if scripted is LOST:
                    status, _ = 500, self._forward(body)
                text = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
                self._answer(status, [("Content-Type", "application/xml")], text, str(len(text)))

        def _pass_on(self, body):
            answer, content = self._forward(body)
            length = answer.getheader("Content-Length", "0") if self.command == "HEAD" else str(len(content))
            self._answer(answer.status, answer.getheaders(), content, length)

        def _forward(self, body):
            left_out = "if-none-match" if middle.is_deaf else ""
            headers = {name: value for name, value in self.headers.items() if name.lower() != left_out}
            connection = http.client.HTTPConnection(*server)
            connection.request(self.command, self.path, body=body, headers=headers)
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            return answer, content

        def _answer(self, status, headers, content, length):
            self.send_response(status)
            for name, value in headers:
                if name.lower() not in _OF_THE_CONNECTION:
                    self.send_header(name, value)
            self.send_header("Content-Length", length)
            self.end_headers()
            if self.command != "HEAD":  # a client that reuses the connection would read the content as its next answer
                self.wfile.write(content)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _work

        def log_message(self, format, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as front:
        middle.url = "http://{}:{}".format(*front.server_address)
        thread = threading.Thread(target=front.serve_forever)
        thread.start()
        try:
            yield middle
        finally:
            front.shutdown()
            thread.join()
