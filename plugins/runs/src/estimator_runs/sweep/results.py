"""The results of a sweep: the best trials, what mattered, and the winner as a configuration file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import tomli_w

from estimator_core.errors import ArgumentError
from estimator_runs.configuration.layers import Origin, resolve
from estimator_runs.configuration.overrides import layer_of, read_settings
from estimator_runs.configuration.reading import read_configuration
from estimator_runs.sweep.driving import Search
from estimator_runs.sweep.engine import engine


def best_trials(search: Search) -> list[Any]:
    """The Pareto front: trials that no other trial beats in every objective. With one objective, the best trial.

    Raises:
        ArgumentError: no trial is complete.
    """
    study = search.shelf.study()
    best = study.best_trials
    if not best:
        raise ArgumentError(f"No trial of {search.shelf.folder} is complete: there is no best one yet.")
    return sorted(best, key=lambda trial: trial.number)[: 1 if len(search.sweep.objectives) == 1 else None]


def importances(search: Search) -> dict[str, float]:
    """How much each value mattered to the first objective, the most important first (PED-ANOVA).

    Returns:
        Shares that sum to 1; empty if the trials are not enough.
    """
    optuna = engine()
    study = search.shelf.study()
    complete = study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,))
    if len({trial.values[0] for trial in complete}) < 2 or len(search.space) < 2:
        return {}
    evaluator = optuna.importance.PedAnovaImportanceEvaluator()
    several = len(search.sweep.objectives) > 1
    target = (lambda trial: trial.values[0]) if several else None
    return dict(optuna.importance.get_param_importances(study, evaluator=evaluator, target=target))


def write_winner(search: Search, path: Path | None = None, number: int | None = None) -> Path:
    """Writes the configuration of a trial, for `estimator run`. It includes the file of the sweep.

    Args:
        search: the sweep.
        path: the path of the file; None: `best.toml` in the directory of the sweep.
        number: the number of the trial; None: the best one.

    Raises:
        ArgumentError: no trial is complete, or that one is not planned.
    """
    chosen = best_trials(search)[0].number if number is None else number
    params = search.shelf.params(chosen)
    if params is None:
        raise ArgumentError(f"{search.shelf.folder} has no trial {chosen}.")
    target = search.shelf.folder / "best.toml" if path is None else path
    settings = read_settings(search.settings)
    said = read_configuration(search.path, search.settings).resolved.values.get("run_config", {})
    seed = {} if "tf_random_seed" in said else {"run_config.tf_random_seed": search.sweep.seed}
    origin = Origin(source=f"trial {chosen}")
    layers = [layer_of(key, value, origin) for key, value in {**seed, **params}.items()]
    include = os.path.relpath(search.path.resolve(), target.parent.resolve())
    values = {"include": include, **resolve([*settings, *filter(None, layers)]).values}
    target.write_text(f"# Trial {chosen} of {search.shelf.folder.name}.\n{tomli_w.dumps(values)}")
    return target
