"""The scenario of a model_dir: writers that supersede each other, a reader with leases, and an evaluator."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable

from estimator_core.errors import SupersededError
from estimator_core.journal import (
    Ended,
    Entry,
    Evaluated,
    Journal,
    JournalError,
    Lineage,
    Retired,
    Saved,
    collect,
    lease,
    new_place,
    observe,
    read_lineage,
    take_over,
)
from estimator_core.storage import ObjectMissingError, Storage, StorageError, StorageGoneError
from estimator_testing.simulation.obligations import Published, check_model_dir
from estimator_testing.simulation.process import Process
from estimator_testing.simulation.simulate import DURABLE, Evidence, Scenario

#: The seconds for which a lease of the scenario is valid. A throttled call or a frozen process takes longer.
LEASE = 60.0
#: The seconds that a reader takes for each part, after which it renews its lease.
_READ_SECONDS = 50.0
_PARTS, _READS = 2, 2


def model_dir_scenario(
    *,
    writers: int = 2,
    saves: int = 1,
    readers: int = 1,
    observers: int = 1,
    keep: int = 1,
    durable: frozenset[str] = DURABLE,
) -> Scenario:
    """Returns the scenario of runs that share a model_dir, with the real journal. It checks its nine obligations.

    Args:
        writers: the number of runs that try to be the writer.
        saves: the number of checkpoints that each of them saves.
        readers: the number of processes that read the newest checkpoint under a lease.
        observers: the number of processes that record an evaluation in addition to the writer.
        keep: the number of checkpoints that are kept.
        durable: the durable calls, as in `Scenario`.

    Example:
        >>> from estimator_testing.simulation import Fault, simulate
        >>> simulate(model_dir_scenario(), [Fault("freeze", "writer-1", 9)]).violations
        ()
    """
    programs: dict[str, Callable[[Process], None]] = {}
    for number in range(1, writers + 1):
        programs[f"writer-{number}"] = _noting_faults(lambda process: _write(process, saves=saves, keep=keep))
    for number in range(1, readers + 1):
        programs[f"reader-{number}"] = _noting_faults(_read)
    for number in range(1, observers + 1):
        programs[f"observer-{number}"] = _noting_faults(_observe)
    return Scenario(programs=programs, check=_check, stranger=_begin_anew, durable=durable)


def _noting_faults(program: Callable[[Process], None]) -> Callable[[Process], None]:
    """Records a `JournalError` as a note, because runs of a replaced model_dir may meet in its remains."""

    def noting(process: Process) -> None:
        try:
            program(process)
        except JournalError as error:
            process.note("damaged", f"{process.name}: {error}")

    return noting


def _write(process: Process, *, saves: int, keep: int) -> None:
    storage = process.storage
    journal = take_over(storage, f"{process.name}, life {process.life}", _newest_step)
    process.note("took", journal.epoch)
    begin = journal.lineage.starts[-1].step
    for step in range(begin + 1, begin + saves + 1):
        place = new_place(journal, step)
        digest = _put_checkpoint(storage, place)
        evaluated = Evaluated(name="", step=step, metrics={"loss": 1.0 / step})
        _publish(process, journal, Saved(step=step, place=place, digest=digest), evaluated)
        for old in sorted(journal.lineage.saved)[:-keep]:
            _publish(process, journal, Retired(place=journal.lineage.saved[old].place))
        collect(storage, journal, lease_seconds=LEASE)
        _publish(process, journal, Ended(step=begin + saves, reason="input", failed=False))


def _publish(process: Process, journal: Journal, *entries: Entry) -> None:
    """Publishes entries. Tries once more after a failure of the storage, as a run retries a save."""
    process.note("wants", entries)
    try:
        number = journal.publish(*entries)
    except (SupersededError, StorageGoneError):
        raise
    except StorageError:
        process.note("wants", entries)
        number = journal.publish(*entries)
    process.note("published", Published(number=number, epoch=journal.epoch, entries=entries))


def _read(process: Process) -> None:
    storage = process.storage
    for _ in range(_READS):
        lineage = read_lineage(storage)
        saved = lineage.newest
        if saved is None:
            time.sleep(5.0)
            continue
        with_lease = lease(storage, lineage, saved.place, process.name)
        if with_lease is None:
            continue
        with with_lease as held:
            process.note("leased", saved.place)
            read: list[bytes] = []
            for part in range(_PARTS):
                read.append(_part(process, saved.place, part))
                time.sleep(_READ_SECONDS)
                held.renew()
            if hashlib.sha256(b"".join(read)).hexdigest() != saved.digest:
                process.note("read something else", saved.place)
            process.note("let go", saved.place)


def _part(process: Process, place: str, part: int) -> bytes:
    try:
        return process.storage.get(f"{place}/{part}")
    except ObjectMissingError:
        process.note("found nothing", place)
        raise


def _observe(process: Process) -> None:
    storage = process.storage
    evaluated = Evaluated(name=f"{process.name}, life {process.life}", step=0, metrics={})
    process.note("wants", (evaluated,))
    number = observe(storage, process.name, evaluated)
    process.note("published", Published(number=number, epoch=None, entries=(evaluated,)))


def _check(evidence: Evidence) -> list[str]:
    """Checks the obligations on the events, and then on the result of the next run."""
    found = check_model_dir(evidence, lease_seconds=LEASE)
    if evidence.removed or found:
        return found
    storage = evidence.storage
    evidence.pass_time(10 * LEASE)
    journal = take_over(storage, "the next run", _newest_step)
    collect(storage, journal, lease_seconds=LEASE)
    kept = {saved.place for saved in journal.lineage.saved.values()}
    folders = ("leases", f"data/{journal.lineage.identity}")  # the remains of a replaced model_dir stay
    left = {entry.key.rpartition("/")[0] for folder in folders for entry in storage.list(folder)}
    if left != kept:
        found.append(f"The next run keeps {sorted(kept)}, but {sorted(left)} exist.")
    return found


def _newest_step(lineage: Lineage) -> int:
    return lineage.newest.step if lineage.newest else 0


def _put_checkpoint(storage: Storage, place: str) -> str:
    parts = [f"{place}, part {part}".encode() for part in range(_PARTS)]
    for part, data in enumerate(parts):
        storage.put_stream(f"{place}/{part}", [data], size=len(data))
    return hashlib.sha256(b"".join(parts)).hexdigest()


def _begin_anew(storage: Storage) -> None:
    journal = take_over(storage, "a stranger", _newest_step)
    place = new_place(journal, 1)
    digest = _put_checkpoint(storage, place)
    journal.publish(Saved(step=1, place=place, digest=digest))
