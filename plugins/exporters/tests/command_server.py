"""Runs `estimator serve` in a process, as users start it, and sends requests with curl."""

import contextlib
import json
import re
import shutil
import subprocess
import sys

import pytest

needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="asks by curl")
PROGRAM = "import sys; from estimator_core.cli import main; sys.exit(main())"


class Started:
    """A server process. `log` contains its log output after it has ended."""

    def __init__(self, process):
        self.process, self.log = process, ""
        line = process.stdout.readline()
        found = re.search(r"(https?)://127\.0\.0\.1:(\d+)(?: and grpc://127\.0\.0\.1:(\d+))?", line)
        assert found, line + process.stderr.read()
        self.scheme, self.port, self.grpc_port = found[1], int(found[2]), int(found[3] or 0)

    def ended(self, seconds=60):
        """Waits for the end of the process and returns its exit code."""
        _, self.log = self.process.communicate(timeout=seconds)
        return self.process.returncode

    def curl(self, path, *arguments, body=None):
        """The status and the body of an answer. The status is 0 if the connection was refused."""
        url = f"{self.scheme}://localhost:{self.port}{path}"
        sent = () if body is None else ("--data-binary", json.dumps(body))
        command = ["curl", "-sS", "--noproxy", "*", "-m", "60", "-w", "\\n%{http_code}", *sent, *arguments, url]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        content, _, status = done.stdout.rpartition("\n")
        return int(status), content or done.stderr


@contextlib.contextmanager
def started(*arguments):
    """Starts the command with the given arguments, on free ports."""
    command = [sys.executable, "-c", PROGRAM, "serve", *map(str, arguments), "--port", "0"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield Started(process)
        finally:
            process.kill()
