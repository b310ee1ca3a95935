"""Sound inputs from other kinds of files: a SQLite table, and the members of a tar archive."""

import hashlib
import json
import sqlite3
import tarfile
from pathlib import Path

import numpy as np

from estimator_core.inputs import InputOptions


class RowsOfSQLite:
    """The rows of the table `examples`, ordered by id."""

    input_options = InputOptions(fresh_arrays=True)

    def __init__(self, path, *, batch_size=4, num_epochs=1):
        self.path, self.batch_size = Path(path), batch_size
        self.connection = sqlite3.connect(self.path)
        self.count = self.connection.execute("SELECT count(*) FROM examples").fetchone()[0]
        self.left = self.count * num_epochs
        self.at = 0

    def __iter__(self):
        return self

    def __next__(self):
        if self.left == 0:
            raise StopIteration
        query = "SELECT x, y FROM examples ORDER BY id LIMIT ? OFFSET ?"
        rows = self.connection.execute(query, (self.batch_size, self.at)).fetchall()
        self.left -= len(rows)
        self.at = (self.at + len(rows)) % self.count
        x, y = zip(*rows, strict=True)
        return {"x": np.array(x, np.float32)[:, None]}, np.array(y, np.float32)

    def get_state(self):
        return {"at": self.at, "left": self.left}

    def set_state(self, state):
        self.at, self.left = state["at"], state["left"]

    @property
    def fingerprint(self):
        return hashlib.sha256(self.path.read_bytes()).hexdigest()

    def close(self):
        self.connection.close()


def members_of_tar(path, *, batch_size=4):
    """An input_fn over the members of an archive, one example of JSON each, in the order of the archive."""

    def batches():
        with tarfile.open(path) as archive:
            names = [member.name for member in archive.getmembers()]
            for begin in range(0, len(names), batch_size):
                rows = [json.loads(archive.extractfile(name).read()) for name in names[begin : begin + batch_size]]
                yield {"x": np.array([row["x"] for row in rows], np.float32)}, np.array([row["y"] for row in rows])

    return batches
