"""Runs of the examples in processes of their own, stopped at chosen moments, and what they leave."""

from __future__ import annotations

import json
import math
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import estimator_core as ec
from estimator_core.checkpoint import read_checkpoint

HERE = Path(__file__).parent
STEPS = 60
#: Tags whose values are times.
TIMES = ("global_step/sec", "examples/sec", "seconds/")
#: What hooks remember of times, and the steps that took them: a resumed process times fewer.
SECONDS = ("secs", "seconds", "steps")


@dataclass(frozen=True, kw_only=True)
class Example:
    """An example and how the tests run it.

    Attributes:
        name: of its file.
        hparams: those that make it short: three checkpoints with an evaluation each.
        inputs: of the exported model's default signature: shapes without the batch.
        folder: of the file.
    """

    name: str
    hparams: dict[str, Any]
    inputs: dict[str, tuple[int, ...]]
    folder: Path = HERE.parents[1] / "examples"


EXAMPLES = {
    example.name: example
    for example in (
        Example(
            name="digits_convnet",
            hparams={"train_steps": STEPS, "min_eval_frequency": STEPS // 3},
            inputs={"image": (8, 8, 1)},
        ),
        Example(
            name="two_tower",
            hparams={"train_steps": STEPS, "evaluate_every": STEPS // 3},
            inputs={"user": (16,), "item": (16,)},
        ),
        Example(name="averaged_run", hparams={}, inputs={"x": (4,)}, folder=HERE),
    )
}


@dataclass(frozen=True, kw_only=True)
class Left:
    """What a run leaves, in a form that can be compared.

    Attributes:
        arrays: bytes by item and path: weights, optimizer, model state, and arrays in the memory of hooks.
        memory: of hooks, the rest.
        metrics: of each evaluation, by its directory and step.
        points: of TensorBoard, by directory and tag: (step, value), without values that are times.
        exports: of each exporter in order: the step, and the outputs for fixed inputs.
        best: what the exporters of best models remember, without the names of exports, which are times.
    """

    arrays: dict[str, bytes]
    memory: Any
    metrics: dict[str, dict[int, dict[str, Any]]]
    points: dict[str, list[tuple[int, Any]]]
    exports: dict[str, list[Any]]
    best: dict[str, Any]


class Runs:
    """Starts runs of one example; one server process serves all of them."""

    def __init__(self, example: Example) -> None:
        self.example = example
        # The server imports its neighbours also where Python is told not to look beside a script.
        found = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
        self._server = subprocess.Popen(
            [
                sys.executable,
                str(HERE / "example_server.py"),
                str(example.folder / f"{example.name}.py"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(found)},
        )
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == "ready\n"

    def run(
        self,
        directory: Path,
        moment: dict[str, Any] | None = None,
        steps_per_dispatch: Any = 1,
        *,
        model_dir: str | None = None,
    ) -> int:
        """One run; its exit status. Its model_dir may be a URL."""
        directory.mkdir(exist_ok=True)
        asked = {
            "model_dir": model_dir or str(directory / "run"),
            "hparams": self.example.hparams,
            "steps_per_dispatch": steps_per_dispatch,
            "trace": str(directory / "trace"),
            "moment": moment,
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(asked) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())

    def close(self) -> None:
        """Ends the server."""
        self._server.communicate()


@pytest.fixture(scope="module", params=["digits_convnet"])
def runs(request: pytest.FixtureRequest) -> Iterator[Runs]:
    """The server; a test may name other examples (indirect parameters)."""
    server = Runs(EXAMPLES[request.param])
    yield server
    server.close()


@pytest.fixture(scope="module")
def whole(runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> tuple[Left, list[dict[str, Any]]]:
    """What the uninterrupted run leaves, and its phases."""
    directory = tmp_path_factory.mktemp("whole")
    assert runs.run(directory) == 0, (directory / "trace.log").read_text()
    return what_is_left(directory, runs.example), read_trace(directory)


@pytest.fixture(scope="module")
def left(runs: Runs) -> Callable[[Path], Left]:
    """Reads what a run left."""
    return lambda directory: what_is_left(directory, runs.example)


@pytest.fixture(scope="session")
def trace() -> Callable[[Path], list[dict[str, Any]]]:
    """Reads the phases of a run."""
    return read_trace


@pytest.fixture(scope="session")
def draw() -> Callable[..., dict[str, Any]]:
    """Draws a moment of a phase."""
    return draw_moment


def read_trace(directory: Path) -> list[dict[str, Any]]:
    """The phases of a run, as they began and ended."""
    return [json.loads(line) for line in (directory / "trace").read_text().splitlines()]


def draw_moment(moments: random.Random, whole: list[dict[str, Any]], phase: str, number: int) -> dict[str, Any]:
    """A moment of a phase: its beginning, its end, or in between, by how long it took in the uninterrupted run."""
    begins = [line["time"] for line in whole if line["what"] == "begin" and line["phase"] == phase]
    ends = [line["time"] for line in whole if line["what"] == "end" and line["phase"] == phase]
    occurrence = moments.randrange(len(begins))
    took = ends[occurrence] - begins[occurrence] if occurrence < len(ends) else 0.1
    at = moments.choice(["begin", moments.uniform(0, took), "end" if ends else "begin"])
    return {"phase": phase, "occurrence": occurrence, "at": at, "signal": number}


def what_is_left(directory: Path, example: Example) -> Left:
    """Reads what a finished run left."""
    run = directory / "run"
    newest = ec.latest_checkpoint(str(run))
    assert newest is not None
    assert newest.endswith(f"/{STEPS}")
    items = read_checkpoint(newest)
    named = {"variables": items.variables, "model_state": items.model_state, "opt_state": items.opt_state}
    arrays = {f"{item}/{path}": value for item, found in named.items() for path, value in found.items()}
    memory = {name: plain(name, state, arrays) for name, state in items.hooks.items()}
    evaluations = sorted(path.name for path in run.glob("eval*"))
    return Left(
        arrays={path: np.asarray(value).tobytes() for path, value in arrays.items()},
        memory=memory,
        metrics={name: ec.read_eval_metrics(str(run / name)) for name in evaluations},
        points={f"{place}:{tag}": seen for place in (".", *evaluations) for tag, seen in points(run / place).items()},
        exports={path.name: exports(path, example) for path in sorted((run / "export").iterdir())},
        best={path.parent.name: remembered(path) for path in sorted((run / "export").glob("*/best.json"))},
    )


def plain(path: str, value: Any, arrays: dict[str, Any]) -> Any:
    """The memory of a hook; its arrays are added to the others."""
    if isinstance(value, Mapping):
        left_out = SECONDS if value.keys() & {"secs", "seconds"} else ()
        return {name: plain(f"{path}/{name}", one, arrays) for name, one in value.items() if name not in left_out}
    if isinstance(value, (list, tuple)):
        return [plain(f"{path}/{number}", one, arrays) for number, one in enumerate(value)]
    if isinstance(value, np.ndarray):
        arrays[f"hooks/{path}"] = value
        return "array"
    return value


def exports(base: Path, example: Example) -> list[Any]:
    """What is in the directory of an exporter."""
    rows = {
        name: np.linspace(0, 1, 3 * math.prod(shape), dtype=np.float32).reshape(3, *shape)
        for name, shape in example.inputs.items()
    }
    found: list[Any] = []
    for path in sorted(path for path in base.iterdir() if path.name.isdigit()):
        export = ec.export.load(str(path))
        outputs = export.signatures["serving_default"](**rows)
        found.append({name: np.asarray(value).tobytes() for name, value in outputs.items()})
    return found


def remembered(path: Path) -> Any:
    """A file of an exporter without the names of exports."""
    return json.loads(re.sub(r"\d{10}", "", path.read_text()))


def points(directory: Path) -> dict[str, list[tuple[int, Any]]]:
    """What TensorBoard's own reader sees of scalars."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(directory), size_guidance={"scalars": 0}).Reload()
    return {
        tag: [(event.step, None if tag.startswith(TIMES) else event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }
