"""A run of a model_dir in a separate process that may kill itself at its n-th change of the storage."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys

from estimator_core.errors import SupersededError
from estimator_core.journal import Retired, Saved, collect, new_place, take_over
from estimator_core.storage import LocalStorage

CHANGES = ("put_new", "put", "put_stream", "delete")


class Dying(LocalStorage):
    """A storage that kills the process before or after its n-th change. With n = 0 it never does."""

    def __init__(self, root: str, number: int, *, before: bool) -> None:
        super().__init__(root)
        self._left, self._before = number, before

    def __getattribute__(self, name):
        method = super().__getattribute__(name)
        if name not in CHANGES:
            return method

        def dying(*args, **kwargs):
            self._left -= 1
            if self._left == 0 and self._before:
                os.kill(os.getpid(), signal.SIGKILL)
            method(*args, **kwargs)
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        return dying


def main(root: str, name: str, acknowledged: str, saves: int, kill_at: int, when: str) -> int:
    """Saves checkpoints until the process is killed, is superseded, or has saved enough."""
    storage = Dying(root, kill_at, before=when == "before")
    with open(acknowledged, "a") as told:

        def tell(number: int, what: str) -> None:
            told.write(json.dumps({"number": number, "what": what, "epoch": journal.epoch}) + "\n")
            told.flush()

        try:
            journal = take_over(storage, name, lambda lineage: lineage.newest.step if lineage.newest else 0)
            print("took", flush=True)
            begin = journal.lineage.starts[-1].step
            for step in range(begin + 1, begin + saves + 1):
                place = new_place(journal, step)
                parts = [f"{place} {part}".encode() * 100 for part in range(3)]
                for part, data in enumerate(parts):
                    storage.put_stream(f"{place}/{part}", [data], size=len(data))
                digest = hashlib.sha256(b"".join(parts)).hexdigest()
                tell(journal.publish(Saved(step=step, place=place, digest=digest)), place)
                for old in sorted(journal.lineage.saved)[:-2]:
                    journal.publish(Retired(place=journal.lineage.saved[old].place))
                collect(storage, journal)
        except SupersededError as error:
            print(error, flush=True)
            return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4], *map(int, sys.argv[4:6]), sys.argv[6]))
