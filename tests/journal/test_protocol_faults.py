"""Tests that the simulation finds deliberate faults of the protocol and names the schedule of each."""

import contextlib
from collections.abc import Callable

import pytest

from estimator_core._journal import garbage_collection, leases, writer
from estimator_core._journal.entries import Retired
from estimator_core._journal.garbage_collection import DATA
from estimator_core._journal.leases import Lease
from estimator_core._journal.reading import write_snapshot
from estimator_core._storage.contract import ObjectExistsError, OutcomeUnknownError
from estimator_core.testing import simulation
from estimator_testing.simulation import model_dir

KINDS = (*simulation.WITHIN_CONTRACT, *simulation.BY_HAND)
Put = Callable[[str, object], None]


def overwriting(storage, key, data):
    storage.put(key, data)
    return True


def lost_is_made(storage, key, data):
    try:
        storage.put_new(key, data)
    except OutcomeUnknownError:
        return True
    except ObjectExistsError:
        return storage.get(key) == data
    return True


def lost_is_not_made(storage, key, data):
    with contextlib.suppress(ObjectExistsError, OutcomeUnknownError):
        storage.put_new(key, data)
        return True
    return False


def removing_before_retiring(process, journal, *entries, publish=model_dir._publish):
    for place in [entry.place for entry in entries if isinstance(entry, Retired)]:
        process.storage.delete([entry.key for entry in process.storage.list(place)])
    publish(process, journal, *entries)


def not_looking_again(storage, lineage, place, reader):
    held = Lease(storage, f"{leases.FOLDER}/{place}/{reader}", reader)
    held.renew()
    return held


def looking_late(storage, lease_seconds):
    entries = list(storage.list(leases.FOLDER))
    now = storage.now()
    storage.delete([one.key for one in entries if now - one.modified >= lease_seconds])
    return {one.key[7:].rpartition("/")[0] for one in entries if now - one.modified < lease_seconds}


def blind(storage, lease_seconds, look=garbage_collection._leased):
    look(storage, lease_seconds)
    return set()


def removing_what_is_under_way(storage, journal):
    lineage = journal.lineage
    named = {saved.place for saved in lineage.saved.values()}.union(lineage.retired)
    found = [entry.key for entry in storage.list(f"{DATA}/{lineage.identity}")]
    storage.delete([key for key in found if key.rpartition("/")[0] not in named])


def of_whoever_is_the_writer(put: Put) -> None:
    def publish(self, *entries):
        writer._require_unchanged(self._storage, self.lineage)
        while (number := writer._append(self._storage, self.lineage, entries, epoch=self.lineage.epoch)) is None:
            pass
        return number

    put("estimator_core._journal.writer.Journal.publish", publish)


def snapshot_first(put: Put) -> None:
    """Writes the snapshot that includes the next record before that record is written, and readers believe it."""
    original = writer._made

    def made(storage, key, data):
        if key.startswith("journal/"):
            lineage = writer.read_lineage(storage)
            writer_add(lineage, data)
            write_snapshot(storage, lineage)
        return original(storage, key, data)

    def writer_add(lineage, data):
        from estimator_core._journal.entries import decode, digest_of
        from estimator_core._journal.lineage import add

        with contextlib.suppress(writer.JournalError):
            add(lineage, decode(data, ""), digest_of(data))

    put("estimator_core._journal.writer._made", made)
    put("estimator_core._journal.reading.is_kept", lambda storage, lineage: True)


SCENARIO = "estimator_testing.simulation.model_dir"
#: Each fault, and the obligations of which it violates at least one.
FAULTS: dict[str, tuple[Callable[[Put], None], str]] = {
    "publish without a look at the identity": (
        lambda put: put("estimator_core._journal.writer._require_unchanged", lambda storage, lineage: None),
        "29",
    ),
    "put instead of put_new": (lambda put: put("estimator_core._journal.writer._made", overwriting), "1"),
    "a lost answer counts as success": (lambda put: put("estimator_core._journal.writer._made", lost_is_made), "12"),
    "a lost answer counts as failure": (lambda put: put("estimator_core._journal.writer._made", lost_is_not_made), "3"),
    "epochs are not compared": (of_whoever_is_the_writer, "4"),
    "removed before the record says retired": (lambda put: put(f"{SCENARIO}._publish", removing_before_retiring), "8"),
    "a lease is not checked again": (lambda put: put(f"{SCENARIO}.lease", not_looking_again), "6"),
    "leases are not asked for": (lambda put: put("estimator_core._journal.garbage_collection._leased", blind), "6"),
    "the clock is read after the leases": (
        lambda put: put("estimator_core._journal.garbage_collection._leased", looking_late),
        "6",
    ),
    "what is under way is removed": (
        lambda put: put("estimator_core._journal.garbage_collection._remove_unrecorded", removing_what_is_under_way),
        "58",
    ),
    "a snapshot before its record": (snapshot_first, "7"),
}


#: The faults that take long to find.
RARE = ("a lease is not checked again", "the clock is read after the leases")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in RARE else ()) for name in FAULTS]
)
def test_a_fault_in_the_protocol_is_found(name, monkeypatch):
    put_in, obligations = FAULTS[name]
    put_in(monkeypatch.setattr)
    scenario = simulation.model_dir_scenario(observers=0)
    report = simulation.explore(scenario, faults=1, kinds=KINDS)
    if report.failure is None:
        report = simulation.explore(scenario, faults=2, schedules=5000, seed=1, kinds=KINDS)
    assert report.failure is not None, report
    print(f"\n{name}: {report}")
    found = {violation.partition(":")[0] for violation in report.failure.violations}
    assert found & set(obligations)
    assert simulation.simulate(scenario, report.failure.faults) == report.failure  # the replay is identical
    monkeypatch.undo()
    assert simulation.simulate(scenario, report.failure.faults).violations == ()


def test_a_stale_list_which_the_contract_forbids_breaks_leases():
    scenario = simulation.model_dir_scenario(observers=0)
    report = simulation.explore(scenario, faults=2, schedules=5000, seed=1, kinds=("stale_list", "turn", "freeze"))
    assert report.failure is not None
    assert any(fault.kind == "stale_list" for fault in report.failure.faults)


def test_data_that_is_not_durable_when_its_write_returns_breaks_checkpoints():
    scenario = simulation.model_dir_scenario(observers=0, durable=frozenset({"put_new"}))
    report = simulation.explore(scenario, faults=1, kinds=("power_before", "power_after"))
    assert report.failure is not None
    assert any("is no longer complete" in violation for violation in report.failure.violations)
