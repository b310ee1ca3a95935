"""Optuna as the engine: which values a trial gets and whether it continues, from the trials that it knows.

A trial knows exactly the trials that ended `workers` places before it. So a seed always leads to the same trials, in
any order of the workers and after any kill.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from estimator_core.errors import ArgumentError
from estimator_runs.configuration.layers import Resolved
from estimator_runs.configuration.problems import ConfigurationError, at, nearest
from estimator_runs.configuration.schema import Parameter, Sweep

if TYPE_CHECKING:
    import optuna


def engine() -> Any:
    """The package optuna, without its log of every trial.

    Raises:
        ArgumentError: optuna is not installed.
    """
    try:
        import optuna
    except ModuleNotFoundError as error:
        if error.name != "optuna":
            raise
        raise ArgumentError('Sweeps need optuna: pip install "estimator-runs[sweep]".') from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def distributions(space: Mapping[str, Parameter], resolved: Resolved) -> dict[str, Any]:
    """The distribution of each value.

    Raises:
        ConfigurationError: a parameter has neither a range nor choices, or an invalid range.
    """
    found: dict[str, Any] = {}
    for name, one in space.items():
        path = ("sweep", "space", name)
        try:
            found[name] = _distribution(one)
        except ValueError as error:
            raise ConfigurationError([at(resolved, path, str(error))]) from None
    return found


def _distribution(one: Parameter) -> Any:
    kinds = engine().distributions
    if (one.choices is None) == (one.low is None and one.high is None):
        raise ValueError("write low and high, or choices.")
    if one.choices is not None:
        if one.step is not None or one.log:
            raise ValueError("choices have neither step nor log.")
        return kinds.CategoricalDistribution(one.choices)
    if one.low is None or one.high is None:
        raise ValueError("a range has low and high.")
    if isinstance(one.low, int) and isinstance(one.high, int) and isinstance(one.step, int | None):
        return kinds.IntDistribution(one.low, one.high, log=one.log, step=one.step or 1)
    return kinds.FloatDistribution(float(one.low), float(one.high), log=one.log, step=one.step)


def directions(sweep: Sweep) -> list[str]:
    """The direction of each objective, in Optuna's words."""
    return ["minimize" if one.mode == "min" else "maximize" for one in sweep.objectives]


def check_engine(sweep: Sweep, resolved: Resolved) -> None:
    """Refuses samplers and pruners that Optuna does not have, or that their arguments do not fit.

    Raises:
        ConfigurationError: one is not valid; the message names it and the nearest valid name.
    """
    if len(sweep.objectives) > 1 and sweep.pruner.name != "NopPruner":
        raise ConfigurationError([at(resolved, ("sweep", "pruner"), "trials of several objectives are not pruned.")])
    for key, module in (("sampler", engine().samplers), ("pruner", engine().pruners)):
        one = getattr(sweep, key)
        known = [name for name in dir(module) if name.endswith(key.capitalize())]
        if one.name not in known:
            text = f"Optuna has no {key} {one.name!r}.{nearest(one.name, known)}"
            raise ConfigurationError([at(resolved, ("sweep", key), text)])
        try:
            _sampler(sweep, 0) if key == "sampler" else _pruner(sweep)
        except (TypeError, ValueError) as error:
            raise ConfigurationError([at(resolved, ("sweep", key), f"{one.name} refuses it: {error}")]) from None


def sample(sweep: Sweep, space: Mapping[str, Any], number: int, known: Sequence[optuna.trial.FrozenTrial]) -> Any:
    """The values of a trial.

    Args:
        sweep: the search.
        space: distributions by name.
        number: the number of the trial.
        known: the trials that it knows, in order.
    """
    study = _view(sweep, number, known)
    return dict(study.ask(dict(space)).params)


def is_pruned(
    sweep: Sweep,
    space: Mapping[str, Any],
    number: int,
    known: Sequence[optuna.trial.FrozenTrial],
    params: Mapping[str, Any],
    values: Mapping[int, float],
) -> bool:
    """Whether a trial ends early.

    Args:
        sweep: the search.
        space: distributions by name.
        number: the number of the trial.
        known: the trials that it knows, in order.
        params: its values.
        values: the results of its evaluations, by step.
    """
    optuna = engine()
    trial = optuna.trial.create_trial(
        state=optuna.trial.TrialState.RUNNING,
        params=dict(params),
        distributions=dict(space),
        intermediate_values=dict(values),
    )
    trial.number = number
    return bool(_pruner(sweep).prune(_view(sweep, number, known), trial))


def _view(sweep: Sweep, number: int, known: Sequence[Any]) -> optuna.Study:
    """A study in memory with the trials that one trial knows of, and a sampler seeded for that trial."""
    optuna = engine()
    study = optuna.create_study(
        directions=directions(sweep), sampler=_sampler(sweep, number), pruner=_pruner(sweep), study_name="sweep"
    )
    study.add_trials(known)
    return study


def _sampler(sweep: Sweep, number: int) -> Any:
    make = getattr(engine().samplers, sweep.sampler.name)
    seed = int.from_bytes(hashlib.sha256(f"{sweep.seed}/{number}".encode()).digest()[:4])
    return make(**{"seed": seed, **sweep.sampler.args})


def _pruner(sweep: Sweep) -> Any:
    return getattr(engine().pruners, sweep.pruner.name)(**sweep.pruner.args)
