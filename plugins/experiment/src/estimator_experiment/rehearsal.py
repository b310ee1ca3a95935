"""What would fail later in a run: every input is opened, every mode traced and every export checked before step 1."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, cast

from estimator_core.errors import EstimatorError, InputError
from estimator_core.estimator import Estimator
from estimator_core.export import RehearsesExports
from estimator_core.hooks import Hook
from estimator_core.inputs import Batch
from estimator_core.lowering import Rehearsal
from estimator_core.modes import ModeKeys
from estimator_core.specs import EvalSpec, TrainSpec
from estimator_core.train_eval import rehearsal
from estimator_experiment.faults import fault

_log = logging.getLogger("estimator_core")


def find_faults(
    estimator: Estimator, train_spec: TrainSpec, eval_specs: Sequence[EvalSpec], *, predicts: bool = False
) -> list[Exception]:
    """What would fail in a `train_and_evaluate`, each with its place. Nothing is compiled, computed or written.

    Each input is opened once more, and a batch is drawn from it. An input whose iterator cannot be opened again is left
    alone, and so is what depends on it. In a run of several processes nothing is tried.

    Args:
        estimator: the Estimator.
        train_spec: the TrainSpec.
        eval_specs: the EvalSpecs.
        predicts: whether the program predicts, too; exports are checked in any case.

    Example:
        >>> import estimator_core as ec
        >>> estimator = ec.Estimator(lambda features: None, model_dir="unused")
        >>> empty = ec.TrainSpec(lambda: iter(()), max_steps=5)
        >>> print(*find_faults(estimator, empty, []))
        The training input: it is empty. Check what input_fn returns in mode 'train'.
    """
    if estimator.config.process_group is not None:
        _log.info("Inputs, modes and exports are not tried before step 1, since there are several processes.")
        return []
    tried, faults = rehearsal(estimator), _Faults()
    trained = _try_mode(tried, faults, ModeKeys.TRAIN, "The training input", train_spec.input_fn, train_spec.hooks)
    batch = trained
    for spec in eval_specs:
        place = "The input of the EvalSpec" + ("" if spec.name is None else f" {spec.name!r}")
        evaluated = _try_mode(tried, faults, ModeKeys.EVAL, place, spec.input_fn, spec.hooks, whole=spec.steps is None)
        batch = batch or evaluated
    if predicts and batch is not None:
        with faults.at("model_fn in mode 'infer'", batch):
            tried.trace(ModeKeys.PREDICT, batch)
    if trained is not None:  # without the training input nobody knows all variables
        for exporter in (exporter for spec in eval_specs for exporter in spec.exporters):
            if isinstance(exporter, RehearsesExports):
                with faults.at(f"The exporter {cast(Any, exporter).name!r}"):
                    exporter.rehearse(tried.check_export)
    return faults.found


class _Faults:
    """Collects faults, each once."""

    def __init__(self) -> None:
        self.found: list[Exception] = []

    @contextlib.contextmanager
    def at(self, place: str, batch: Batch | None = None) -> Generator[None]:
        """Within, an error is a fault of this place."""
        try:
            yield
        except Exception as error:
            self.add(fault(place, error, batch))

    def add(self, found: Exception) -> None:
        """Adds a fault, unless it is there."""
        if str(found) not in map(str, self.found):
            self.found.append(found)


def _try_mode(
    tried: Rehearsal,
    faults: _Faults,
    mode: str,
    place: str,
    input_fn: Callable[..., Any],
    hooks: Sequence[Any],
    *,
    whole: bool = False,
) -> Batch | None:
    """The first batch of an input, once model_fn has been traced with it; None: it has none, or there is a fault.

    `begin` of hooks may make the input ready, or change batches. It is called only where it does not go without.

    Args:
        tried: the rehearsal.
        faults: gets what is wrong.
        mode: the mode.
        place: names the input.
        input_fn: the input.
        hooks: of the call.
        whole: whether all of the input will be read.
    """
    beginning = [hook for hook in hooks if type(hook).begin is not Hook.begin]
    own = _Faults()
    for given in [(), beginning] if beginning else [()]:
        own, batch = _Faults(), None
        with own.at(place):
            batch = _first(tried, mode, input_fn, given, whole=whole)
        if batch is not None:
            with own.at(f"model_fn in mode {str(mode)!r}, with {place[0].lower()}{place[1:]}", batch):
                tried.trace(mode, batch)
        if not own.found:
            return batch
    for found in own.found:
        faults.add(found)
    return None


def _first(
    tried: Rehearsal, mode: str, input_fn: Callable[..., Any], hooks: Sequence[Any], *, whole: bool
) -> Batch | None:
    """The first batch; None if the input cannot be opened twice.

    Raises:
        InputError: there is none, or the input never ends and all of it will be read.
    """
    try:
        with contextlib.closing(tried.open(_noticing(input_fn), mode, hooks)) as source:
            batch = next(source, None)
    except _SharedError:
        _log.info("An input is not tried before step 1, since its iterator cannot be opened again: %r", input_fn)
        return None
    if batch is None:
        raise InputError(f"it is empty. Check what input_fn returns in mode {str(mode)!r}.")
    if whole and source.endless:
        raise InputError("it never ends, so neither would an evaluation. Give it num_epochs=1, or the EvalSpec steps.")
    return batch


class _SharedError(EstimatorError):
    """An input_fn returns the same iterator each time it is called."""


def _noticing(input_fn: Callable[..., Any]) -> Callable[..., Any]:
    """The input_fn, which refuses an iterator that it returns each time: what is drawn from that one is lost."""
    if not inspect.isroutine(input_fn) and not isinstance(input_fn, functools.partial):
        return input_fn

    @functools.wraps(input_fn)
    def noticed(*args: Any, **arguments: Any) -> Any:
        given = input_fn(*args, **arguments)
        if isinstance(given, Iterator) and input_fn(*args, **arguments) is given:
            raise _SharedError("The same iterator is returned each time.")
        return given

    return noticed
