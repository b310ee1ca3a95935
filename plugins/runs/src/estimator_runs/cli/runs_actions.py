"""The actions of `estimator runs`."""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from estimator_core.checkpoint import is_held
from estimator_core.errors import ArgumentError, did_you_mean
from estimator_experiment.cli.json_text import json_text
from estimator_experiment.cli.run_report import fitted, table
from estimator_runs.records.comparing import against_best, column_text, differences, rank
from estimator_runs.records.page import short_number, write_page
from estimator_runs.records.reading import RunRecord, read_run, read_runs, read_sound_runs, tag_run


def list_(args: argparse.Namespace, places: list[Path]) -> int:
    """Prints a line for each run, the best first."""
    runs = [run for run in _read(places) if args.tag is None or args.tag in run.tags]
    _check_metrics(runs, [args.metric])
    ranked = sorted(runs, key=lambda run: rank(run.best(args.metric, args.mode), args.mode))
    if args.json:
        print(json_text([_described(run, args) | {"ended": run.record.get("ended")} for run in ranked]))
        return 0
    rows = [
        (str(run.path), short_number(run.best(args.metric, args.mode)), _ended(run), ", ".join(run.tags))
        for run in ranked
    ]
    print(fitted(rows, ("run", args.metric, "ended", "tags")))
    return 0


def show_(args: argparse.Namespace, places: list[Path]) -> int:
    """Prints everything about one run."""
    run = read_run(places[0])
    if args.json:
        found = {name: max(results, default=None) for name, results in run.evaluations.items()}
        newest_of = {
            name: {"step": step, "metrics": run.evaluations[name][step]}
            for name, step in found.items()
            if step is not None
        }
        print(json_text({"tags": run.tags, **run.record, "evaluations": newest_of}, default=repr))
        return 0
    print(json.dumps({"tags": run.tags, **run.record}, indent=1))
    for name, results in run.evaluations.items():
        newest = max(results, default=None)
        if newest is not None:
            metrics = [
                (key, short_number(value)) for key, value in results[newest].items() if isinstance(value, int | float)
            ]
            print(f"\nevaluation {name or 'without a name'}, step {newest}")
            print(table(metrics, ("metric", "value")))
    return 0


def compare_(args: argparse.Namespace, places: list[Path]) -> int:
    """Prints the differences of runs, and whether they are more than chance."""
    runs = _read(places)
    _check_metrics(runs, [args.metric])
    varying = differences(runs)
    pairs = against_best(runs, args.metric, args.mode)
    if args.json:
        differing = [{key: values[place] for key, values in varying.items()} for place in range(len(runs))]
        told = [_described(run, args) | {"settings": one} for run, one in zip(runs, differing, strict=True)]
        against = [{"settings": one.settings, "best": one.best, **asdict(one.found)} for one in pairs]
        print(json_text({"runs": told, "against": against}, default=repr))
        return 0
    columns = [column_text(values) for values in varying.values()]
    rows = [
        (
            str(run.path),
            short_number(run.best(args.metric, args.mode)),
            str(run.seed),
            *(texts[i] for texts in columns),
        )
        for i, run in enumerate(runs)
    ]
    print(fitted(rows, ("run", args.metric, "seed", *varying)))
    for one in pairs:
        found = one.found
        print(
            f"\n{one.settings} against {one.best}, {len(found.seeds)} seeds: {found.difference:+.4g} "
            f"[{found.low:+.4g}, {found.high:+.4g}]"
        )
    return 0


def plot_(args: argparse.Namespace, places: list[Path]) -> int:
    """Writes one HTML page with the curves of all runs."""
    runs = _read(places)
    _check_metrics(runs, args.metrics)
    page = write_page(runs, args.metrics, Path(args.output), mode=args.mode)
    print(f"{page}: {len(runs)} run{'s' * (len(runs) != 1)}")
    return 0


def tag_(args: argparse.Namespace, places: list[Path]) -> int:
    """Adds tags to runs: `DIR TAG...`, or `DIR... --tag TAG`."""
    tags = list(args.tags)
    if not tags:
        tags, places = args.dirs[1:], places[:1]
        several = [tag for tag in tags if Path(tag).is_dir()]
        if several or not tags:
            what = f"{several[0]} is a directory, not a tag" if several else "There is no tag"
            raise ArgumentError(
                f"{what}. Write one tag after --tag: estimator runs tag {shlex.join(args.dirs)} --tag good"
            )
    for run in read_runs(places):  # all are read before one is written
        print(f"{run.path}: {', '.join(tag_run(run.path, tags, remove=args.remove)) or 'no tags'}")
    return 0


def rm_(args: argparse.Namespace, places: list[Path]) -> int:
    """Removes runs. It removes only model_dirs, never a directory that only contains some."""
    places = list(dict.fromkeys(places))
    for place in places:
        if place.is_symlink():
            raise ArgumentError(
                f"{place} is a symbolic link, but only whole runs are removed. Remove the run it leads to, "
                f"{shlex.quote(str(place.resolve()))}, and then the link."
            )
    working = [place for place in places if not _has_ended(place, force=args.force)]
    if working and not args.force:
        raise ArgumentError(
            f"{', '.join(map(str, working))} has not ended: it is still running, or was interrupted and can "
            "continue. --force removes it if no process trains there."
        )
    if held := [str(place) for place in places if is_held(place)]:
        raise ArgumentError(
            f"A process trains in {', '.join(held)}, and would write there again. Stop it first. If you are sure that "
            f"it is gone, delete {held[0]}/run.lock."
        )
    for place in places:
        try:
            shutil.rmtree(place)
        except OSError as error:
            told = f"{place} cannot be removed completely: {error.filename}: {error.strerror}."
            raise ArgumentError(told) from error
        print(f"removed {place}")
    return 0


def _has_ended(place: Path, *, force: bool) -> bool:
    """Returns whether a run has ended by itself. With `force`, a run whose record cannot be read counts as not ended.

    Raises:
        ArgumentError: the directory holds no run, or without `force`, a run that cannot be read.
    """
    try:
        return "ended" in read_run(place).record
    except ArgumentError as error:
        if not (place / "run.json").is_file():
            raise
        if force:
            return False
        raise ArgumentError(f"{error}. --force removes it if no process trains there.") from error


def _read(places: Sequence[Path]) -> list[RunRecord]:
    """Returns the runs that can be read. Prints the others on standard error."""
    runs, faults = read_sound_runs(places)
    for fault in faults:
        print(f"left out: {fault}", file=sys.stderr)
    return runs


def _check_metrics(runs: Sequence[RunRecord], names: Sequence[str]) -> None:
    known = {name for run in runs for name in run.metric_names()}
    for name in names:
        if known and name not in known:  # runs without any evaluation are shown without a value
            hint = did_you_mean(name, sorted(known))
            raise ArgumentError(f"No run has the metric {name!r}.{hint} Metrics: {', '.join(sorted(known))}.")


def _described(run: RunRecord, args: argparse.Namespace) -> dict[str, Any]:
    best = run.best(args.metric, args.mode)
    return {"run": str(run.path), args.metric: best, "seed": run.seed, "tags": list(run.tags)}


def _ended(run: RunRecord) -> str:
    ended = run.record.get("ended")
    return f"step {ended['step']}: {ended['reason']}" if ended else "no"
