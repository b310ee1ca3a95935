"""Finds faults of a model_dir in a store, for `estimator audit URL`, after the journal was replayed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping

from estimator_core.checkpoint import manifest_digest, read_manifest
from estimator_core.errors import CheckpointError
from estimator_core.journal import Lineage, Saved, results_in
from estimator_core.storage import Storage
from estimator_storage.at_urls.checkpoints import check_written_here
from estimator_storage.at_urls.directories import download_file
from estimator_storage.at_urls.kept_exports import MANIFEST
from estimator_storage.at_urls.scratch import scratch_directory
from estimator_storage.at_urls.side_files import export_of, is_event_file, of_this_run

#: A fault: the kind of the object, its key, and the description of the fault.
Fault = tuple[str, str, str]


def faults_in_store(storage: Storage, lineage: Lineage) -> Iterator[Fault]:
    """Compares a model_dir in a store with its journal. Arrays are compared by size, and nothing is changed.

    Args:
        storage: the storage of the model_dir.
        lineage: the sum of its journal. Results, unrecorded checkpoints and unrecorded bytes of event files are
            compared only after its run has ended.

    Raises:
        CheckpointError: the model_dir was written at a path.
    """
    check_written_here(storage, lineage)
    sizes = {entry.key: entry.size for entry in of_this_run(storage)}
    for saved in lineage.saved.values():
        yield from _of_checkpoint(storage, saved, sizes)
    yield from _of_event_files(lineage, sizes)
    yield from _of_exports(storage, lineage, sizes)
    if lineage.ended is not None:
        yield from _of_results(storage, lineage, sizes)
        known = {saved.place for saved in lineage.saved.values()}.union(lineage.retired)
        for place in sorted({"/".join(key.split("/")[:3]) for key in sizes if key.startswith("data/")} - known):
            yield "leftover", place, "left by an interrupted run: the next run that saves removes it"


def _of_checkpoint(storage: Storage, saved: Saved, sizes: Mapping[str, int]) -> Iterator[Fault]:
    copy = scratch_directory("audit") / str(saved.step)
    copy.mkdir()
    if f"{saved.place}/{MANIFEST}" in sizes:
        (copy / MANIFEST).write_bytes(storage.get(f"{saved.place}/{MANIFEST}"))
    if manifest_digest(copy) != saved.digest:
        yield "checkpoint", saved.place, f"differs from what was saved at step {saved.step}, or is missing"
        return
    try:
        manifest = read_manifest(copy)
    except CheckpointError as error:
        yield "checkpoint", saved.place, str(error)
        return
    wanted = {name: file.bytes for name, file in manifest.files.items()}
    for name, size in wanted.items():
        found = sizes.get(f"{saved.place}/{name}")
        if found != size:
            yield "checkpoint", f"{saved.place}/{name}", f"has {found or 0} of {size} bytes: the manifest names it"
    for pack in manifest.packs:
        if f"{saved.place}/{pack.name}" not in sizes:
            yield "checkpoint", f"{saved.place}/{pack.name}", "is missing: the manifest names it"


def _of_event_files(lineage: Lineage, sizes: Mapping[str, int]) -> Iterator[Fault]:
    counted = {f"{told.directory}/{told.name}".lstrip("/"): told.size for told in lineage.segments}
    for key, size in counted.items():
        found = sizes.get(key, 0)
        if found < size:
            yield "event file", key, f"has {found} of the {size} bytes that the journal counts: some points are lost"
    for key, found in sizes.items() if lineage.ended is not None else ():
        if is_event_file(key) and found > counted.get(key, 0):
            yield "event file", key, f"has {found} bytes, of which {counted.get(key, 0)} count: a process was killed"


def _of_exports(storage: Storage, lineage: Lineage, sizes: Mapping[str, int]) -> Iterator[Fault]:
    for place in sorted({export for key in sizes if (export := export_of(key))}):
        recorded, manifest = lineage.exports.get(place), f"{place}/{MANIFEST}"
        if recorded is None and manifest not in sizes:
            yield "partial export", place, "no program loads it: a run that starts a day later removes it"
        elif recorded is None:
            yield "export", place, "is not recorded: the next call that writes to this model_dir records it"
        elif recorded.digest and manifest not in sizes:
            yield "export", place, f"has no {MANIFEST}: its removal was interrupted, or files were removed by hand"
        elif recorded.digest and hashlib.sha256(storage.get(manifest)).hexdigest() != recorded.digest:
            yield "export", place, "differs from what was recorded"


def _of_results(storage: Storage, lineage: Lineage, sizes: Mapping[str, int]) -> Iterator[Fault]:
    copy = scratch_directory("audit")
    for entry in storage.list(""):
        if entry.key.endswith("/metrics.jsonl") and entry.key.count("/") == 1:
            download_file(storage, entry, copy / entry.key)
    written = {(one.name, one.step): _plain(one.metrics) for one in results_in(copy)}
    recorded = {key: _plain(one.metrics) for key, one in lineage.evaluations.items()}
    for name, step in sorted(key for key in written.keys() | recorded.keys() if written.get(key) != recorded.get(key)):
        yield "results", f"eval_{name}" if name else "eval", f"its result of step {step} differs from the journal"


def _plain(metrics: object) -> str:
    return json.dumps(metrics, sort_keys=True)
