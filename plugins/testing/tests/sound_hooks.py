"""Sound hooks that differ from run to run or depend on the clock: a tracker with a run id, and a budget of seconds."""

import json
import queue
import threading
import time
import uuid
from pathlib import Path

from estimator_core.hooks import Hook, Wake


class BudgetHook(Hook):
    """Ends the training after a number of seconds, which includes the seconds before an interruption."""

    def __init__(self, seconds):
        self.seconds = seconds
        self.spent = 0.0
        self.since = None

    def after_create(self, run):
        self.since = time.monotonic()

    def next_step(self, step):
        return Wake(step=step + 1)

    def after_step(self, run, step, out):
        if self.total() >= self.seconds:
            run.request_stop(f"the budget of {self.seconds} s is spent")

    def total(self):
        return self.spent if self.since is None else self.spent + time.monotonic() - self.since

    def state(self):
        return {"spent": self.total()}

    def restore(self, state):
        self.spent = state["spent"]


class TrackerHook(Hook):
    """Sends every loss to a tracker, here a file, under an id that a resumed run keeps."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.run_id = uuid.uuid4().hex
        self.lowest = float("inf")
        self.sent = None

    def begin(self, run):
        run.follow("loss")

    def after_create(self, run):
        self.sent = queue.SimpleQueue()
        self.sender = threading.Thread(target=self.send, args=(self.folder / f"{self.run_id}.jsonl",), daemon=True)
        self.sender.start()

    def on_values(self, run, steps, values):
        for step, loss in zip(steps, values["loss"].tolist(), strict=True):
            if loss < self.lowest:
                self.lowest = loss
                run.summaries.scalar("lowest", loss, step)
            self.sent.put({"step": step, "loss": loss})

    def end(self, run):
        if self.sent is not None:
            self.sent.put(None)
            self.sender.join()
            self.sent = None

    def state(self):
        return {"run_id": self.run_id, "lowest": self.lowest}

    def restore(self, state):
        self.run_id, self.lowest = state["run_id"], state["lowest"]

    def send(self, path):
        with path.open("a") as file:
            while (point := self.sent.get()) is not None:
                file.write(json.dumps(point) + "\n")
