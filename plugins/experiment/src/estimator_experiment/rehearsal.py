"""Finds faults before step 1 that would stop a run later. Opens inputs, traces modes and checks exports."""

from __future__ import annotations

import contextlib
import logging
import time
import weakref
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from estimator_core.errors import InputError, ModelFnError
from estimator_core.estimator import Estimator
from estimator_core.export import RehearsesExports
from estimator_core.hooks import Hook
from estimator_core.inputs import Batch
from estimator_core.modes import ModeKeys
from estimator_core.specs import EvalSpec, TrainSpec
from estimator_core.train_eval import rehearsal
from estimator_experiment.faults import fault
from estimator_experiment.opened_again import random_numbers_kept, reached

_log = logging.getLogger("estimator_core")
_LONG = 5  # seconds


def find_faults(
    estimator: Estimator,
    train_spec: TrainSpec,
    eval_specs: Sequence[EvalSpec],
    *,
    predicts: bool = False,
    left_out: Callable[[str], None] = _log.info,
) -> list[Exception]:
    """Finds the faults that would stop a `train_and_evaluate` call, with their places.

    Nothing is compiled, computed or written.

    Each input is opened once more, and a batch is drawn from it. An input is skipped if opening it could consume data
    or block, because its function uses an iterator or queue that it did not create. Everything that depends on it is
    skipped too. Afterwards, the state of random number generators is restored. In a run of several processes nothing is
    tried. With a separate evaluator process, the chief tries its own part.

    Args:
        estimator: the Estimator.
        train_spec: the TrainSpec.
        eval_specs: the EvalSpecs.
        predicts: whether the program also predicts. If not, a fault of PREDICT that does not affect an export is a
            warning.
        left_out: is called with everything that is not tried.

    Raises:
        StorageError: the store of the Estimator's files does not exist.

    Example:
        >>> import estimator_core as ec
        >>> estimator = ec.Estimator(lambda features: None, model_dir="unused")
        >>> empty = ec.TrainSpec(lambda: iter(()), max_steps=5)
        >>> print(*find_faults(estimator, empty, []))
        The training input: it is empty. Check what input_fn returns in mode 'train'.
    """
    if estimator.config.process_group is not None:
        left_out("Inputs, modes and exports are not tried before step 1, because there are several processes.")
        return []
    if "chief" in estimator.config.cluster.cluster:
        eval_specs = ()  # the evaluator is a separate process, and may have its own files
    once = _once(train_spec, eval_specs, predicts)
    if once in _FOUND_SOUND.get(estimator, ()):
        return []
    began = time.monotonic()
    with random_numbers_kept():
        found = Trial(estimator, left_out).find(train_spec, eval_specs, predicts=predicts)
    if (seconds := time.monotonic() - began) > _LONG:
        _log.info("Inputs, modes and exports were tried in %.0f s. The option `rehearse` switches this off.", seconds)
    if not found:
        _FOUND_SOUND.setdefault(estimator, []).append(once)
    return found


#: The rehearsals without faults, which are not repeated if a program calls train_and_evaluate in a loop.
_FOUND_SOUND: weakref.WeakKeyDictionary[Estimator, list[Any]] = weakref.WeakKeyDictionary()


def _once(train_spec: TrainSpec, eval_specs: Sequence[EvalSpec], predicts: bool) -> Any:
    """Returns a key of everything on which a rehearsal depends, without keeping it alive."""
    things = [train_spec.input_fn, *train_spec.hooks]
    for spec in eval_specs:
        things += [spec.input_fn, *spec.hooks, *spec.exporters]
    return predicts, [spec.steps is None for spec in eval_specs], [_reference(thing) for thing in things]


def _reference(thing: Any) -> Any:
    try:
        return weakref.ref(thing)
    except TypeError:
        return object()  # equal to nothing: tried each time


class Faults:
    """Collects faults, each once.

    Attributes:
        found: the faults.
    """

    def __init__(self) -> None:
        self.found: list[Exception] = []

    @contextlib.contextmanager
    def at(self, place: str, batch: Batch | None = None) -> Generator[None]:
        """Records an error within the block as a fault of this place."""
        try:
            yield
        except Exception as error:
            self.add(fault(place, error, batch))

    def add(self, found: Exception) -> None:
        """Adds a fault, unless it is already recorded."""
        if str(found) not in map(str, self.found):
            self.found.append(found)


@dataclass(frozen=True, kw_only=True)
class TriedInput:
    """An input of a run that is tried.

    Attributes:
        mode: the mode of the call.
        place: the name of the input.
        input_fn, hooks: the input_fn and the hooks of the call.
        whole: whether the run reads all of it.
    """

    mode: str
    place: str
    input_fn: Callable[..., Any]
    hooks: Sequence[Any]
    whole: bool = False


class Trial:
    """The rehearsal of one Estimator, with its findings.

    Args:
        estimator: the Estimator.
        left_out: a function that is called with everything that is not tried.
        faults: the collection of faults; default: a new one.

    Attributes:
        tried: the rehearsal, which records the variables that modes declare.
        predictions: shapes and dtypes of the predictions of the last mode that was tried.
        faults: the faults so far.
    """

    def __init__(
        self, estimator: Estimator, left_out: Callable[[str], None] = _log.info, faults: Faults | None = None
    ) -> None:
        self.tried = rehearsal(estimator)
        self.faults = Faults() if faults is None else faults
        self.predictions: Any = None
        self._left_out = left_out

    def find(
        self, train_spec: TrainSpec, eval_specs: Sequence[EvalSpec], *, predicts: bool, within: str = ""
    ) -> list[Exception]:
        """Tries the training, the evaluations, and the exports or predictions.

        Args:
            train_spec: the TrainSpec of the run.
            eval_specs: the EvalSpecs of the run.
            predicts: see `find_faults`.
            within: the text after the name of each place.
        """
        trained = self.mode(
            TriedInput(
                mode=ModeKeys.TRAIN,
                place=f"The training input{within}",
                input_fn=train_spec.input_fn,
                hooks=train_spec.hooks,
            )
        )
        batch = trained
        for spec in eval_specs:
            place = "The input of the EvalSpec" + ("" if spec.name is None else f" {spec.name!r}") + within
            evaluated = self.mode(
                TriedInput(
                    mode=ModeKeys.EVAL,
                    place=place,
                    input_fn=spec.input_fn,
                    hooks=spec.hooks,
                    whole=spec.steps is None,
                )
            )
            batch = batch or evaluated
        exported = [
            exporter for spec in eval_specs for exporter in spec.exporters if isinstance(exporter, RehearsesExports)
        ]
        if batch is not None and (predicts or not exported):
            self.prediction(batch, refused=predicts)
        if trained is not None:  # without the training input, not all variables are known
            for exporter in exported:
                with self.faults.at(f"The exporter {cast(Any, exporter).name!r}{within}"):
                    exporter.rehearse(self.tried.check_export)
        return self.faults.found

    def prediction(self, batch: Batch, *, refused: bool) -> None:
        """Traces PREDICT. If the program does not predict, a fault is only a warning."""
        place = "model_fn in mode 'infer'"
        try:
            self.tried.trace(ModeKeys.PREDICT, batch)
        except Exception as error:
            if refused:
                self.faults.add(fault(place, error, batch))
            elif not isinstance(error, (ModelFnError, NotImplementedError)):  # these mean that the mode does not exist
                _log.warning("predict and exports will fail with features as in training: %s", fault(place, error))

    def mode(self, given: TriedInput) -> Batch | None:
        """Returns the first batch of an input after model_fn was traced with it; None: there is no batch, or a fault.

        `begin` of hooks may prepare the input, or change batches. It is called only if the trial fails without it.
        """
        found = reached(given.input_fn)
        if found.one_shot is not None:
            self._left_out(
                f"{given.place} is not tried: that would use up {found.one_shot}, or wait for it. An input_fn that "
                "makes a new iterator at each call is tried."
            )
            return None
        beginning = [hook for hook in given.hooks if type(hook).begin is not Hook.begin]
        own = Faults()
        for hooks in [(), beginning] if beginning else [()]:
            own = Faults()
            with random_numbers_kept(found.random):
                batch = self._traced(given, hooks, own)
            if not own.found:
                return batch
        for each in own.found:
            self.faults.add(each)
        return None

    def _traced(self, given: TriedInput, hooks: Sequence[Any], faults: Faults) -> Batch | None:
        with faults.at(given.place):
            batch = self.first(given, hooks)
            with faults.at(f"model_fn in mode {str(given.mode)!r}, with {_lower(given.place)}", batch):
                self.predictions = self.tried.trace(given.mode, batch)
            return batch
        return None

    def first(self, given: TriedInput, hooks: Sequence[Any]) -> Batch:
        """Returns the first batch.

        Raises:
            InputError: there is no batch, or the input never ends and the run reads all of it.
        """
        with contextlib.closing(self.tried.open(given.input_fn, given.mode, hooks)) as source:
            batch = next(source, None)
        if batch is None:
            raise InputError(f"it is empty. Check what input_fn returns in mode {str(given.mode)!r}.")
        if given.whole and source.endless:
            raise InputError(
                "it never ends, so neither would an evaluation. Give it num_epochs=1, or the EvalSpec steps."
            )
        return batch


def _lower(place: str) -> str:
    return f"{place[0].lower()}{place[1:]}"
