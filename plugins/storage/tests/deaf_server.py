"""A server that ignores conditions, as some stores and proxies do: it passes all of a request on but If-None-Match."""

from __future__ import annotations

import contextlib
import http.client
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextlib.contextmanager
def deaf_server(server: tuple[str, int]) -> Generator[str]:
    """In front of a server of S3; gives its URL."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name: value for name, value in self.headers.items() if name.lower() != "if-none-match"}
            connection = http.client.HTTPConnection(*server)
            connection.request(self.command, self.path, body=body, headers=headers)
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "content-length", "date", "server"):
                    self.send_header(name, value)
            length = answer.getheader("Content-Length", "0") if self.command == "HEAD" else str(len(content))
            self.send_header("Content-Length", length)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass_on

        def log_message(self, format, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as deaf:
        thread = threading.Thread(target=deaf.serve_forever)
        thread.start()
        try:
            yield "http://{}:{}".format(*deaf.server_address)
        finally:
            deaf.shutdown()
            thread.join()
