"""Folds that one program trains together: the members of a population with different rows."""

from __future__ import annotations

import contextlib
import json
from functools import partial

from estimator_runs.folds.fold import Folds, check_finite, fold_experiment, judge, training_input
from estimator_runs.json_file import write_json
from estimator_runs.population.member import Member
from estimator_runs.population.training import Population
from estimator_runs.workers import Interruption, owned


def run_together(folds: Folds) -> None:
    """Trains all folds that have not ended by one program, then evaluates and predicts each.

    Folds that belong to another process are not changed.

    Raises:
        ArgumentError: the folds cannot be trained together. The message names the reason.
        NanLossDuringTrainingError: the loss of a fold is not finite. The others have ended.
        PreemptedError: SIGTERM or SIGINT stopped it. The progress is saved.
    """
    place, way = folds.folder / "way.json", folds.crossval.way
    known = json.loads(place.read_text()) if place.exists() else None
    with contextlib.ExitStack() as stack:
        waiting = [fold for fold in range(len(folds.splits)) if not folds.done(fold)]
        mine = [fold for fold in waiting if stack.enter_context(owned(folds.model_dir(fold)))]
        going = {fold: fold_experiment(folds, fold) for fold in mine if not folds.done(fold)}
        if not going:
            return
        members = [
            Member(
                name=f"fold {fold}",
                estimator=one.estimator,
                input_fn=training_input(folds, fold),
                hooks=tuple(one.train_hooks),
            )
            for fold, one in going.items()
        ]
        interruption = stack.enter_context(Interruption())
        keep_way = partial(write_json, place)
        population = Population(members, way=known if way == "auto" else way, keep_way=keep_way)
        population.train(next(iter(going.values())).train_steps)
        for fold, one in going.items():
            interruption.check()
            if f"fold {fold}" not in population.failed:
                judge(folds, fold, one)
    check_finite({fold: population.failed[f"fold {fold}"] for fold in going if f"fold {fold}" in population.failed})
