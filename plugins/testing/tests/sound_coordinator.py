"""A coordinator over the files of a folder, without a service. `connect` keeps the contract, and options break it."""

import atexit
import json
import math
import os
import threading
import time
from collections import Counter
from pathlib import Path

from estimator_core.coordinator import Lost
from estimator_core.errors import ProcessLostError

BEAT_SECS, SILENCE_SECS = 0.1, 4.0


def connect(processes, options):
    """Connects processes that share an address through a folder of their test.

    Ports are used again, and so files are too.
    """
    place = Path.cwd() / f"coordinator-{processes.coordinator.replace(':', '-')}"
    return FileCoordinator(place, processes, frozenset(options.get("broken", ())))


class FileCoordinator:
    def __init__(self, place, processes, broken):
        self.place, self.index, self.count, self.broken = place, processes.index, processes.count, broken
        self.serials, self.gone, self.failed = Counter(), None, False
        self.place.mkdir(exist_ok=True)
        self.beat()
        threading.Thread(target=self.keep_beating, daemon=True).start()
        self.barrier("connected", 60.0)
        atexit.register(self.close)

    def agree(self, topic, value, timeout):
        if "sticky" not in self.broken or not self.serials[topic]:
            self.serials[topic] += 1
        files = [self.file(f"{topic}-{self.serials[topic]}-{index}") for index in range(self.count)]
        self.write(files[self.index], value)
        deadline = math.inf if "patient" in self.broken else time.monotonic() + timeout
        while missing := [index for index, file in enumerate(files) if not file.exists()]:
            ended = self.file(f"left-{missing[0]}").exists()
            if self.lost() is None and ended and not files[missing[0]].exists():  # it may have written just before
                self.gone = Lost(missing[0], "somebody", "it has ended")
            if self.lost() is None and time.monotonic() > deadline:
                self.gone = Lost(missing[0], "somebody", "it is late")
            if self.gone is not None:
                raise ProcessLostError(self.gone.describe(self.count), self.gone.index)
            time.sleep(0.005)
        values = [file.read_text() for file in files]
        return values[::-1] if "unordered" in self.broken else values

    def tell(self, topic, value, timeout):
        return self.agree(topic, value or "", timeout)[0]

    def barrier(self, topic, timeout):
        self.agree(topic, "", timeout)

    def fail(self, error):
        self.failed = True
        reason = str(error).split("\n")[0]
        if "speechless" not in self.broken:
            self.write(self.file(f"failed-{self.index}"), reason)

    def lost(self):
        for index in range(self.count):
            if self.gone is not None or index == self.index:
                continue
            if self.file(f"left-{index}").exists():
                if "nervous" in self.broken:
                    self.gone = Lost(index, "somebody", "it has ended")
                if "forgetful" not in self.broken:
                    continue
            if self.file(f"failed-{index}").exists():
                self.gone = Lost(index, "somebody", self.file(f"failed-{index}").read_text())
            elif "deaf" not in self.broken and self.silent(index):
                self.gone = Lost(index, "somebody", "it is silent")
        return self.gone

    def close(self):
        if self.failed or self.gone is not None:
            return
        self.write(self.file(f"left-{self.index}"), "")
        if "hasty" in self.broken and self.index == 0:
            for file in self.place.iterdir():
                file.unlink(missing_ok=True)
            self.write(self.file("failed-0"), "the folder is gone")

    def file(self, name):
        return self.place / name.replace("/", "_")

    def write(self, file, value):
        draft = file.with_suffix(f".{self.index}{threading.get_ident()}")
        draft.write_text(value)
        draft.rename(file)

    def beat(self):
        self.write(self.file(f"beat-{self.index}"), json.dumps([time.time(), os.getpid()]))

    def keep_beating(self):
        while True:
            time.sleep(BEAT_SECS)
            self.beat()

    def silent(self, index):
        file = self.file(f"beat-{index}")
        return file.exists() and time.time() - json.loads(file.read_text())[0] > SILENCE_SECS
