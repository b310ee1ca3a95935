"""The results of a sweep: the best trials, the importance of values, and the winner as a configuration file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import tomli_w

from estimator_core.errors import ArgumentError
from estimator_runs.configuration.files import read_layers
from estimator_runs.configuration.layers import KeyPath, Origin, resolve
from estimator_runs.configuration.overrides import layer_of, of_same_types, read_settings
from estimator_runs.configuration.reading import read_configuration
from estimator_runs.sweep.driving import Search
from estimator_runs.sweep.engine import engine

#: A text that names code as `file.py:name`.
_CODE = re.compile(r"[^:]+\.py:[A-Za-z_][\w.]*")


def best_trials(search: Search) -> list[Any]:
    """Returns the Pareto front: trials that no other trial beats in every objective. For one objective: the best.

    Raises:
        ArgumentError: no trial is complete.
    """
    study = search.shelf.study()
    best = study.best_trials
    if not best:
        raise ArgumentError(f"No trial of {search.shelf.folder} is complete: {_why_none(search)}")
    return sorted(best, key=lambda trial: trial.number)[: 1 if len(search.sweep.objectives) == 1 else None]


def _why_none(search: Search) -> str:
    """Returns why no trial is complete: the ended ones have failed or were pruned, or no trial has ended."""
    ended = [search.shelf.outcome(number) for number in range(search.shelf.ended())]
    failed = {number: one.reason for number, one in enumerate(ended) if one is not None and one.state == "FAIL"}
    if not failed:
        return "there is no best one yet."
    newest = max(failed)
    return f"{len(failed)} of the {len(ended)} that have ended have failed. Trial {newest}: {failed[newest]}"


def importances(search: Search) -> dict[str, float]:
    """Returns the importance of each value for the first objective, the most important first (PED-ANOVA).

    Returns:
        Shares that sum to 1; empty if there are too few trials.
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
        ArgumentError: no trial is complete, or the trial of this number is not planned.
    """
    chosen = best_trials(search)[0].number if number is None else number
    plan = search.shelf.plan(chosen)
    if plan is None:
        raise ArgumentError(f"{search.shelf.folder} has no trial {chosen}.")
    target = search.shelf.folder / "best.toml" if path is None else path
    # As the trials have them: with the types of the file, and with code relative to the directory of the command.
    settings = of_same_types(read_settings(search.settings), resolve(read_layers(search.path)))
    way = os.path.relpath(Path.cwd(), target.parent.resolve())
    settings = [replace(layer, values=_seen_from(layer.values, way)) for layer in settings]
    said = read_configuration(search.path, search.settings).resolved.values.get("run_config", {})
    seed = {} if "tf_random_seed" in said else {"run_config.tf_random_seed": search.sweep.seed}
    origin = Origin(source=f"trial {chosen}")
    layers = [layer_of(key, value, origin) for key, value in {**seed, **plan.params}.items()]
    include = os.path.relpath(search.path.resolve(), target.parent.resolve())
    values = {"include": include, **resolve([*settings, *filter(None, layers)]).values}
    target.write_text(f"# Trial {chosen} of {search.shelf.folder.name}.\n{tomli_w.dumps(values)}", encoding="utf-8")
    return target


def _seen_from(value: Any, way: str, path: KeyPath = ()) -> Any:
    """Converts settings for a file in another directory. Their Python files and `${here}` stay the same.

    Args:
        value: the settings.
        way: the relative path from the directory of the file to the one of the settings.
        path: the path of the value.

    Example:
        >>> _seen_from({"model": {"function": "line.py:model_fn"}, "train": {"max_steps": 2}}, "../..")
        {'model': {'function': '../../line.py:model_fn'}, 'train': {'max_steps': 2}}
    """
    if isinstance(value, Mapping):
        return {key: _seen_from(each, way, (*path, key)) for key, each in value.items()}
    if isinstance(value, list):
        return [_seen_from(each, way, (*path, place)) for place, each in enumerate(value)]
    if not isinstance(value, str) or path[:1] == ("hparams",):  # hyperparameters reach the program unchanged
        return value
    if path == ("program", "file") or _CODE.fullmatch(value):
        return os.path.join(way, value)
    return value.replace("${here}", f"${{here}}/{way}")
