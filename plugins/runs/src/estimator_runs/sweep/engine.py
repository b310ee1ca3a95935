"""Optuna as the engine: it chooses the values of a trial and whether it continues, from the trials that it knows.

A trial knows exactly the trials that ended `workers` places before it, and the plans of those since. So a seed always
leads to the same trials, in any order of the workers and after any kill. The study of Optuna is made again for each
trial. The state that samplers and pruners keep in it is stored with the plans and outcomes.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from estimator_core.errors import ArgumentError, did_you_mean
from estimator_runs.configuration.layers import Resolved
from estimator_runs.configuration.problems import ConfigurationError, at
from estimator_runs.configuration.schema import Parameter, Sweep

if TYPE_CHECKING:
    import optuna


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The values that a sampler chose for a trial, with the state that it keeps.

    Args:
        params: the values by name.
        attributes: the state that it keeps with the trial, such as a generation.
        study: the state that it keeps with the study after this trial, such as its place in a sequence.
    """

    params: Mapping[str, Any]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    study: Mapping[str, Any] = field(default_factory=dict[str, Any])


def engine() -> Any:
    """Returns the package optuna, without its log of every trial.

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
    """Returns the distribution of each value.

    Raises:
        ArgumentError: optuna is not installed.
        ConfigurationError: a parameter has neither a range nor choices, or an invalid range.
    """
    kinds, found = engine().distributions, dict[str, Any]()
    for name, one in space.items():
        path = ("sweep", "space", name)
        try:
            found[name] = _distribution(one, kinds)
        except ValueError as error:
            raise ConfigurationError([at(resolved, path, str(error))]) from None
    return found


def _distribution(one: Parameter, kinds: Any) -> Any:
    if (one.choices is None) == (one.low is None and one.high is None):
        raise ValueError("write low and high, or choices.")
    if one.choices is not None:
        if one.step is not None or one.log:
            raise ValueError("choices have neither step nor log.")
        return kinds.CategoricalDistribution(one.choices)
    if one.low is None or one.high is None:
        raise ValueError("a range needs low and high.")
    if isinstance(one.low, int) and isinstance(one.high, int) and isinstance(one.step, int | None):
        return kinds.IntDistribution(one.low, one.high, log=one.log, step=one.step or 1)
    return kinds.FloatDistribution(float(one.low), float(one.high), log=one.log, step=one.step)


def directions(sweep: Sweep) -> list[str]:
    """Returns the direction of each objective, in the words of Optuna."""
    return ["minimize" if one.mode == "min" else "maximize" for one in sweep.objectives]


#: The packages that a sampler needs and Optuna does not install.
_NEEDED = {"GPSampler": "torch"}
_PICKLES = (
    "CmaEsSampler keeps its state as a pickle, but a sweep neither writes nor reads pickles. TPESampler (the default), "
    "GPSampler and NSGAIISampler also learn from the trials."
)


def check_engine(sweep: Sweep, resolved: Resolved) -> None:
    """Refuses samplers and pruners that Optuna does not have, or whose packages are missing or arguments wrong.

    Raises:
        ConfigurationError: one is not valid. The message names it and the nearest valid name.
    """
    if len(sweep.objectives) > 1 and sweep.pruner.name != "NopPruner":
        raise ConfigurationError([at(resolved, ("sweep", "pruner"), "trials of several objectives are not pruned.")])
    for key, module in (("sampler", engine().samplers), ("pruner", engine().pruners)):
        one = getattr(sweep, key)
        known = [name for name in dir(module) if name.endswith(key.capitalize())]
        if one.name not in known:
            text = f"Optuna has no {key} {one.name!r}.{did_you_mean(one.name, known)}"
            raise ConfigurationError([at(resolved, ("sweep", key), text)])
        if one.name == "CmaEsSampler":
            raise ConfigurationError([at(resolved, ("sweep", key), _PICKLES)])
        needed = _NEEDED.get(one.name)
        if needed is not None and importlib.util.find_spec(needed) is None:
            text = f"{one.name} needs {needed}: pip install {needed}."
            raise ConfigurationError([at(resolved, ("sweep", key), text)])
        try:
            _sampler(sweep, 0) if key == "sampler" else _pruner(sweep)
        except (AttributeError, TypeError, ValueError) as error:
            raise ConfigurationError([at(resolved, ("sweep", key), f"{one.name} refuses it: {error}")]) from None


def check_space(sweep: Sweep, space: Mapping[str, Any], resolved: Resolved) -> None:
    """Refuses a sampler that cannot choose values for a space, or whose grid has values outside of it.

    Raises:
        ConfigurationError: it cannot. The message has the reason of Optuna.
    """
    name, args = sweep.sampler.name, sweep.sampler.args
    grid = args.get("search_space", {}) if name == "GridSampler" else {}
    if extra := sorted(grid.keys() - space.keys()):
        text = f"search_space has {extra[0]!r}, but the space does not.{did_you_mean(extra[0], space)}"
        raise ConfigurationError([at(resolved, ("sweep", "sampler"), text)])
    try:
        for key in grid:
            for value in grid[key]:
                running(space, Plan(params={key: value}))
        sample(sweep, space, [], {})
    except (TypeError, ValueError) as error:
        text = f"{name} does not fit the space: {error}"
        raise ConfigurationError([at(resolved, ("sweep", "sampler"), text)]) from None


def sample(
    sweep: Sweep,
    space: Mapping[str, Any],
    known: Sequence[optuna.trial.FrozenTrial],
    remembered: Mapping[str, Any],
) -> Plan:
    """Returns the plan of the next trial after those that it knows.

    Args:
        sweep: the search.
        space: the distributions by name.
        known: the trials that it knows, in order.
        remembered: the state that the sampler kept with the study when it planned the previous trial.
    """
    storage = engine().storages.InMemoryStorage()
    study = _view(sweep, known, storage)
    place = storage.get_study_id_from_name(study.study_name)
    for name, value in remembered.items():
        storage.set_study_system_attr(place, name, value)
    study.pruner.prune(study, running(space, Plan(params={})))  # Hyperband distributes the trials at this call
    params = dict(study.ask(dict(space)).params)
    attributes = study.get_trials(deepcopy=False)[-1].system_attrs
    return Plan(params=params, attributes=dict(attributes), study=dict(storage.get_study_system_attrs(place)))


def pruning(
    sweep: Sweep,
    space: Mapping[str, Any],
    known: Sequence[optuna.trial.FrozenTrial],
    plan: Plan,
    values: Mapping[int, float],
) -> tuple[bool, Mapping[str, Any]]:
    """Returns whether the next trial ends early, and the state that sampler and pruner keep with it.

    Args:
        sweep: the search.
        space: the distributions by name.
        known: the trials that it knows, in order.
        plan: the plan of the trial, with the state that the pruner has kept so far.
        values: the results of its evaluations, by step.
    """
    study = _view(sweep, [*known, running(space, plan, values)])
    pruned = bool(study.pruner.prune(study, study.get_trials()[-1]))
    return pruned, dict(study.get_trials(deepcopy=False)[-1].system_attrs)


def running(space: Mapping[str, Any], plan: Plan, values: Mapping[int, float] | None = None) -> Any:
    """Returns a trial that has not ended, as an object of Optuna.

    Args:
        space: the distributions by name.
        plan: the plan of the trial.
        values: the results of its evaluations, by step.
    """
    optuna = engine()
    return optuna.trial.create_trial(
        state=optuna.trial.TrialState.RUNNING,
        params=dict(plan.params),
        distributions={name: space[name] for name in plan.params},
        intermediate_values=dict(values or {}),
        system_attrs=dict(plan.attributes),
    )


def _view(sweep: Sweep, known: Sequence[Any], storage: Any = None) -> optuna.Study:
    """Returns a study in memory with the trials that one trial knows, and a sampler with a seed for that trial."""
    optuna = engine()
    study = optuna.create_study(
        storage=storage,
        directions=directions(sweep),
        sampler=_sampler(sweep, len(known)),
        pruner=_pruner(sweep),
        study_name="sweep",
    )
    study.add_trials(known)
    return study


def _sampler(sweep: Sweep, number: int) -> Any:
    """Returns the sampler of a trial. Its seed depends on its number and on the seed of the sampler or sweep.

    For a grid or a sequence, all trials share the seed and take different places.
    """
    name, args, samplers = sweep.sampler.name, dict(sweep.sampler.args), engine().samplers
    whole = args.pop("seed", sweep.seed)
    seed = int.from_bytes(hashlib.sha256(f"{whole}/{number}".encode()).digest()[:4])
    if name == "GridSampler":
        return samplers.GridSampler(seed=whole, **args)
    if name == "QMCSampler":
        return samplers.QMCSampler(**{"seed": whole, "independent_sampler": samplers.RandomSampler(seed=seed), **args})
    return getattr(samplers, name)(seed=seed, **args)


def _pruner(sweep: Sweep) -> Any:
    return getattr(engine().pruners, sweep.pruner.name)(**sweep.pruner.args)
