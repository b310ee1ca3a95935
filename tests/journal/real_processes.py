"""Runs in separate processes, killed at chosen changes or frozen during a take-over: `python -m … 200`."""

from __future__ import annotations

import hashlib
import json
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from estimator_core.journal import Lineage, collect, read_lineage, take_over
from estimator_core.storage import LocalStorage

WRITER = Path(__file__).with_name("writer_process.py")
NO_END = 1_000_000


def start(
    folder: Path, name: str, *, saves: int = NO_END, kill_at: int = 0, when: str = "after"
) -> subprocess.Popen[str]:
    """Starts a run of the model_dir."""
    arguments = [str(folder / "run"), name, str(folder / "acknowledged"), str(saves), str(kill_at), when]
    command = [sys.executable, str(WRITER), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def trials(folder: Path, number: int, *, seed: int) -> Counter[str]:
    """Makes a number of kills and freezes in one model_dir, and then checks the remaining files.

    Returns:
        The count of each outcome.
    """
    (folder / "run").mkdir()
    (folder / "acknowledged").touch()
    chance = random.Random(seed)
    counts: Counter[str] = Counter()
    for trial in range(number):
        if chance.random() < 0.75:
            when = chance.choice(("before", "after"))
            run = start(folder, f"trial {trial}", kill_at=chance.randint(1, 40), when=when)
            run.communicate()
            assert run.returncode == -signal.SIGKILL
            counts[f"killed {when} a change"] += 1
        else:
            counts[freeze(folder, f"trial {trial}")] += 1
    return counts + prove(folder)


def freeze(folder: Path, name: str) -> str:
    """Freezes a run until another takes over, and then continues the first, which must stop and name the other."""
    frozen = start(folder, name)
    assert frozen.stdout is not None
    assert frozen.stdout.readline() == "took\n"
    frozen.send_signal(signal.SIGSTOP)
    other = start(folder, f"the other of {name}", saves=2)
    assert other.communicate()[0] == "took\n"
    assert other.returncode == 0
    frozen.send_signal(signal.SIGCONT)
    said, _ = frozen.communicate()
    assert frozen.returncode == 3, said
    assert f"the other of {name}" in said
    return "frozen, superseded, and named its successor"


def prove(folder: Path) -> Counter[str]:
    """Checks what must be true of the remaining files."""
    storage = LocalStorage(folder / "run")
    whole = read_lineage(storage, whole=True)
    assert read_lineage(storage) == whole
    told = [json.loads(line) for line in (folder / "acknowledged").read_text().splitlines()]
    keys = [entry.key for entry in storage.list("journal")]
    assert [int(key[-10:]) for key in keys] == list(range(whole.number + 1))
    for one in told:
        record = json.loads(storage.get(keys[one["number"]]).partition(b"\n")[0])
        assert (record["epoch"], record["entries"][0]["place"]) == (one["epoch"], one["what"])
    journal = take_over(storage, "the proof", _newest)
    collect(storage, journal)
    for saved in journal.lineage.saved.values():
        parts = [storage.get(entry.key) for entry in storage.list(saved.place)]
        assert hashlib.sha256(b"".join(parts)).hexdigest() == saved.digest
    kept = {saved.place for saved in journal.lineage.saved.values()}
    assert {entry.key.rpartition("/")[0] for entry in storage.list("data")} == kept
    return Counter({"records": whole.number + 1, "epochs": whole.epoch, "acknowledged": len(told)})


def _newest(lineage: Lineage) -> int:
    return lineage.newest.step if lineage.newest else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as root:
        print(dict(trials(Path(root), int(sys.argv[1]), seed=18)))
