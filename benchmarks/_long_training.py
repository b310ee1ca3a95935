"""Steps of long trainings, and of hand-written loops. Contestants take turns in a process, and a round is a process.

Each contestant trains without end, and runs a fixed number of steps in each turn: one `train` call per Estimator, in a
separate thread. So only steps are measured. Contestants alternate several times per second, so the changing speed of a
shared machine hardly affects the comparison. Two identical loops in one process may differ by up to 14% for the life of
the process, because of where their memory lies. So each round is a process, and creates the contestants in a random
order. With `--busy N`, every round runs on the idle machine and beside N spinning processes, in random order. Besides
seconds, the processor time of all threads and the context switches of a turn are measured, because other work affects
these less.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

import jax
import numpy as np
from _finished import Finished
from _load import IDLE, Load, add_options, loads_of
from _report import Table, report, write
from _side_by_side import compared

import estimator_core as ec


class LongTraining:
    """One `train` call that runs `steps` steps on each request."""

    def __init__(
        self, model_fn: Callable[..., Any], batches: Callable[[], Iterator[Any]], steps: int, **config: Any
    ) -> None:
        saving: dict[str, Any] = {"save_checkpoints_steps": None, "save_checkpoints_secs": None}
        directory = tempfile.mkdtemp(prefix="bench-steps-")
        self._estimator = ec.Estimator(
            model_fn, config=ec.RunConfig(model_dir=directory, tf_random_seed=1, **saving, **config)
        )
        self._batches, self._steps, self._ended = batches, steps, False
        self._go, self._done = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._train)
        self._thread.start()
        self._done.acquire()

    def __call__(self) -> None:
        """Runs the steps."""
        self._go.release()
        self._done.acquire()

    def end(self) -> None:
        """Ends the training."""
        self._ended = True
        self._go.release()
        self._thread.join()

    def _train(self) -> None:
        training, finished = self, Finished()

        class Turns:
            input_options = ec.inputs.InputOptions(fresh_arrays=True, replay=False)

            def __iter__(self) -> Iterator[Any]:
                source = training._batches()
                while not training._ended:
                    yield from itertools.islice(source, training._steps)
                    finished.wait()
                    training._done.release()
                    training._go.acquire()

        self._estimator.train(Turns, max_steps=10**9, hooks=[finished])


def hand_written(step: Callable[..., Any], state: Any, source: Iterator[Any], steps: int) -> Callable[[], None]:
    """Returns a loop with donated state that reads nothing. `step(state, x, y)` returns the state and a loss."""
    compiled = jax.jit(step, donate_argnums=0)
    live = [state]

    def run() -> None:
        state, loss = live.pop(), None
        for _ in range(steps):
            state, loss = compiled(state, *next(source))
        jax.block_until_ready((state, loss))
        live.append(state)

    return run


BARE, CONTROL = "bare loop", "another bare loop"
#: The quantities of a turn, and their display: a title, the unit of a step, and units per second (or switch).
QUANTITIES = {
    "seconds": ("", ("us/step", 1e6)),
    "cpu": ("processor time of all threads, ", ("us/step", 1e6)),
    "switches": ("context switches, ", ("/step", 1.0)),
}
#: The values of the rounds by contestant, for one quantity.
Values = dict[str, list[float]]


def arguments(*, rounds: int, turns: int, steps: int) -> argparse.ArgumentParser:
    """Returns the parser of the options of such a benchmark, with these defaults."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--turns", type=int, default=turns, help="of each contestant in a round")
    parser.add_argument("--steps", type=int, default=steps, help="of a turn")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    add_options(parser)
    return parser


def used() -> dict[str, float]:
    """Returns the resources that this process has used so far, by quantity."""
    usage = getrusage(RUSAGE_SELF)
    return {
        "seconds": time.perf_counter(),
        "cpu": usage.ru_utime + usage.ru_stime,
        "switches": usage.ru_nvcsw + usage.ru_nivcsw,
    }


def print_round(makers: Mapping[str, Callable[[], Callable[[], None]]], turns: int) -> None:
    """Prints the medians of the resources that a turn of each contestant used, in this process."""
    order = np.random.default_rng()
    contestants = {name: makers[name]() for name in order.permutation(list(makers))}
    measured: dict[str, Values] = {quantity: {name: [] for name in contestants} for quantity in QUANTITIES}
    for turn in range(turns + 2):
        for name in order.permutation(list(contestants)):
            before = used()
            contestants[name]()
            after = used()
            for quantity in QUANTITIES if turn >= 2 else ():
                measured[quantity][name].append(after[quantity] - before[quantity])
    for contestant in contestants.values():
        if isinstance(contestant, LongTraining):
            contestant.end()
    print(
        json.dumps(
            {
                quantity: {name: float(np.median(found)) for name, found in values.items()}
                for quantity, values in measured.items()
            }
        )
    )


def measured_rounds(args: argparse.Namespace, loads: Sequence[Load], *options: str) -> dict[str, dict[Load, Values]]:
    """Runs the processes of this script under each load, and returns their results, by quantity.

    Args:
        args: the arguments that `arguments` parsed.
        loads: the other work. Every round has all loads, in random order.
        options: the further options for each process.
    """
    child = [sys.executable, sys.argv[0], "--child", "--steps", str(args.steps), "--turns", str(args.turns), *options]
    measured: dict[str, dict[Load, Values]] = {quantity: {load: {} for load in loads} for quantity in QUANTITIES}
    order = np.random.default_rng()
    for _ in range(args.rounds):
        for place in order.permutation(len(loads)):
            with loads[place].running():
                printed = subprocess.run(child, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
            for quantity, values in json.loads(printed).items():
                for name, value in values.items():
                    measured[quantity][loads[place]].setdefault(name, []).append(value)
    return measured


def report_steps(
    title: str,
    args: argparse.Namespace,
    *options: str,
    idle: Mapping[tuple[str, str], float],
    busy: Mapping[tuple[str, str], float],
) -> None:
    """Measures, and reports every contestant with the bare loop, idle and under each load in one table.

    Args:
        title: the title of the tables.
        args: the arguments that `arguments` parsed.
        options: the further options for each process.
        idle: the targets of ratios of seconds on an idle machine, by `(contestant, reference)`.
        busy: the same targets with other work on the machine.
    """
    loads = loads_of(args)
    measured = measured_rounds(args, loads, *options)
    names = sorted(measured["seconds"][IDLE])
    pairs = dict.fromkeys([*((name, BARE) for name in names if name != BARE), *idle, *busy])
    targets = {
        (load.of(one), load.of(other)): target
        for load in loads
        for (one, other), target in (idle if load == IDLE else busy).items()
    }
    tables: list[Table] = []
    for quantity, (what, (unit, scale)) in QUANTITIES.items():
        timed = quantity == "seconds"
        results = [
            replace(
                compared(measured[quantity][load], one, other, smaller_is_better=not timed),
                name=load.of(one),
                reference=load.of(other),
            )
            for load in loads
            for one, other in pairs
        ]
        of_step, wanted = (unit, scale / args.steps), targets if timed else None
        title_of = f"Steps of a long training: {what}{title}"
        tables.append(report(title_of, results, steps=args.steps, targets=wanted, unit=of_step))
    write(args.json, *tables)
