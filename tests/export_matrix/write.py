"""Writes the exports of the matrix: `python -m tests.export_matrix.write DIRECTORY [--cut] [--seconds S]`.

For each case, DIRECTORY has a folder with the exports, the requests of a reader, and the outputs of the estimator for
them. `cells.json` lists the refusals with their messages. Existing cases stay, so a call continues where another one
ended. Several calls at the same time share the work.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import estimator_core as ec
from estimator_core.errors import EstimatorError
from tests.export_matrix.cases import FORMATS, MODES, Case, Sample
from tests.export_matrix.every import every_case
from tests.export_matrix.kept import claimed

CELLS, PATH = "cells.json", "path.txt"
#: The exit code if rows are missing.
UNFINISHED = 75
_MYSELF = (sys.executable, "-m", "tests.export_matrix.write")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--cut", action="store_true", help="only what the ordinary CI tries")
    parser.add_argument("--only", default="", help="a part of the names of cases")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no case begins after them")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the work")
    arguments = parser.parse_args()
    directory: Path = arguments.directory
    others = [subprocess.Popen([*_MYSELF, *sys.argv[1:], "--jobs", "1"]) for _ in range(arguments.jobs - 1)]
    until = time.monotonic() + arguments.seconds
    chosen = [one for one in every_case() if arguments.only in one.name and (one.cut is not None or not arguments.cut)]
    for case in chosen:
        if time.monotonic() < until and not (directory / case.name / CELLS).is_file():
            with claimed(directory / case.name) as mine:
                if mine:
                    _make(case, directory / case.name, cut=arguments.cut)
    for other in others:
        other.wait()
    found = [directory / case.name / CELLS for case in chosen]
    cells = [cell for path in found if path.is_file() for cell in json.loads(path.read_text())]
    unclear = [cell for cell in cells if cell["state"] not in ("works", "refused")]
    for cell in unclear:
        print(f"NEITHER: {cell['name']} {cell['format']} {cell['mode']}: {cell['words']}", file=sys.stderr)
    missing = sum(not path.is_file() for path in found)
    print(f"{len(found) - missing} of {len(found)} rows are written{': call it again' if missing else ''}.", flush=True)
    return UNFINISHED if missing else int(bool(unclear))


def _make(case: Case, folder: Path, *, cut: bool) -> None:
    if (folder / CELLS).is_file():  # another call has ended it meanwhile
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    wanted = [case.cut] if cut and case.cut else [(form, mode) for form in FORMATS for mode in MODES]
    unfinished = folder / f"{CELLS}.unfinished"
    unfinished.write_text(json.dumps(written(case, wanted, folder), indent=1) + "\n")
    unfinished.rename(folder / CELLS)


def written(case: Case, wanted: list[tuple[str, str]], folder: Path) -> list[dict[str, Any]]:
    """Returns the cells of one case, before any reader has tested them."""
    began = time.perf_counter()
    try:
        sample = case.make()
    except Exception:
        known = {"name": case.name, "group": case.group, "row": case.row, "state": "failed"}
        return [{**known, "format": form, "mode": mode, "words": traceback.format_exc()} for form, mode in wanted]
    cells: list[dict[str, Any]] = []
    for form in FORMATS:
        modes = [mode for one, mode in wanted if one == form]
        cells += _cells(sample, form, folder, modes) if modes else []
    modes = [mode for mode in MODES if any(cell["mode"] == mode and cell["state"] == "works" for cell in cells)]
    bundles = [cell for cell in cells if cell["format"] == FORMATS[0]]
    for cell in bundles or (_cells(sample, FORMATS[0], folder, modes) if modes else []):
        if cell["state"] == "works":
            path = folder / cell["folder"]
            _expect(sample, cell["mode"], path / (path / PATH).read_text(), folder / "expected" / cell["mode"])
    states = " ".join(f"{cell['format']}/{cell['mode']}:{cell['state']}" for cell in cells)
    print(f"{case.name}: {time.perf_counter() - began:.1f} s, {states}", flush=True)
    return [{"name": case.name, "group": case.group, "row": case.row, **cell} for cell in cells]


def _cells(sample: Sample, format_name: str, folder: Path, modes: Sequence[str]) -> list[dict[str, Any]]:
    """Exports all modes together, or each mode separately if one of them is refused."""
    whole = folder / format_name
    found = {mode: {**_export(sample, format_name, whole, modes), "folder": format_name} for mode in modes[:1]}
    if found[modes[0]]["state"] == "works" or len(modes) == 1:
        found = dict.fromkeys(modes, found[modes[0]])
    else:
        shutil.rmtree(whole, ignore_errors=True)
        found = {
            mode: {**_export(sample, format_name, whole / mode, (mode,)), "folder": f"{format_name}/{mode}"}
            for mode in modes
        }
    return [{"format": format_name, "mode": mode, **found[mode]} for mode in modes]


def _export(sample: Sample, format_name: str, folder: Path, modes: Sequence[str]) -> dict[str, str]:
    receivers = {mode: receiver for mode, receiver in sample.receivers().items() if mode in modes}
    try:
        path = sample.estimator.experimental_export_all_saved_models(str(folder), receivers, format=format_name)
    except EstimatorError as error:
        # An error during writing does not count as a refusal, because a training may have ended by then.
        return {"state": "late" if folder.exists() else "refused", "words": str(error)}
    except Exception:
        return {"state": "failed", "words": traceback.format_exc()}
    (folder / PATH).write_text(Path(path).name)
    return {"state": "works", "words": ""}


def _expect(sample: Sample, mode: str, export: Path, folder: Path) -> None:
    """Writes inputs and outputs of each signature of a mode, by the StableHLO bundle, which the core compares."""
    loaded = ec.export.load(str(export))
    names = [name for name in loaded.signatures if (name if name in MODES else "infer") == mode]
    for name in names:
        signature, raw = loaded.signatures[name], loaded.raw_signatures[name]
        sent = dict(sample.features)
        arrays = raw.prepare(sent) if isinstance(raw, ec.export.RawSignature) else _prepared(sample)
        arrays = {key: value for key, value in arrays.items() if key in signature.inputs}
        given = signature(**arrays)
        shown = raw(**sent) if mode == "infer" else given
        for what, values in (("arrays", arrays), ("given", given), ("raw", sent), ("shown", shown)):
            save(folder / name / f"{what}.npz", values)


def _prepared(sample: Sample) -> dict[str, np.ndarray]:
    """Returns features and labels as model_fn receives them, by the names of their inputs."""
    batch = sample.estimator.first_batch(sample.batch)
    labels = batch.labels if isinstance(batch.labels, Mapping) else {"label": batch.labels}
    return {**sample.features, **batch.features, **(labels if batch.labels is not None else {})}


def save(path: Path, values: Mapping[str, Any]) -> None:
    """Writes arrays of a batch. Text becomes bytes, and dtypes that numpy does not know become float32."""
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = {name: np.asarray(value) for name, value in values.items()}
    plain = {name: value.astype(np.float32) if value.dtype.kind == "V" else value for name, value in plain.items()}
    np.savez(path, **{name: as_bytes(value) if value.dtype.kind in "OU" else value for name, value in plain.items()})


def as_bytes(texts: np.ndarray) -> np.ndarray:
    """Returns an array of dtype "S"."""
    encoded = [text if isinstance(text, bytes) else str(text).encode() for text in texts.reshape(-1).tolist()]
    return np.array(encoded or [b""], "S")[: texts.size].reshape(texts.shape)


if __name__ == "__main__":
    sys.exit(main())
