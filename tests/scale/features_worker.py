"""Features of a run, one after the other: `features_worker.py SETTINGS_JSON`. It writes the results of each.

Settings: folder, out, mesh, cases (names, or empty for all). `<out>.<process>.json` has the results of every case:
numbers by name.
"""

import functools
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import models
import numpy as np

import estimator_core as ec
from estimator_core._loop.resuming import input_context

STEPS = 12
Result = dict[str, Any]
#: A case receives a maker of Estimators, the part of a batch for this process, and its own folder.
Case = Callable[[Callable[..., ec.Estimator], Callable[[int], int], Path], Result]
CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    """Adds a function to the table of cases."""
    CASES[function.__name__] = function
    return function


def norms(estimator: ec.Estimator) -> Result:
    """Returns the step and the norm of every variable."""
    values = estimator.variables
    return {"step": estimator.latest_checkpoint().rpartition("/")[2]} | {
        name: float(np.linalg.norm(np.asarray(value))) for name, value in sorted(values.items())
    }


class Looks(ec.export.Exporter):
    """Evaluates and predicts."""

    name = ""

    def __init__(self, name: str) -> None:
        self.name = name

    def export(
        self, estimator: Any, export_path: str, checkpoint_path: str, eval_result: Any, is_the_final_export: bool
    ) -> str:
        metrics = estimator.evaluate(models.eval_input(48), checkpoint_path=checkpoint_path, name=self.name)
        rows = list(estimator.predict(models.eval_input(48), predict_keys=["class"]))
        Path(export_path).mkdir(parents=True, exist_ok=True)
        told = {"metrics": {name: float(value) for name, value in metrics.items()}, "last": is_the_final_export}
        seen = {**told, "classes": [int(row["class"]) for row in rows]}
        Path(export_path, f"{Path(checkpoint_path).name}.json").write_text(json.dumps(seen))
        return export_path


def specs(part: Callable[[int], int], *, hooks: Any = (), exporters: Any = (), steps: int = STEPS) -> Any:
    """Returns the specs of a training and its evaluations."""
    return (
        ec.TrainSpec(models.train_input(part(32)), max_steps=steps, hooks=hooks),
        ec.EvalSpec(models.eval_input(part(52)), exporters=exporters, start_delay_secs=0, throttle_secs=0),
    )


def numbers(metrics: Any) -> Result:
    """Returns the metrics of an evaluation as numbers."""
    return {} if metrics is None else {name: float(value) for name, value in metrics.items()}


@case
def exporters_evaluate_and_predict(make: Any, part: Any, folder: Path) -> Result:
    estimator = make()
    metrics, _ = ec.train_and_evaluate(estimator, *specs(part, exporters=[Looks("one"), Looks("two")]))
    seen = {
        f"{path.parent.name}/{path.name}": json.loads(path.read_text())
        for path in sorted(Path(estimator.model_dir).glob("export/*/*.json"))
    }
    return {**norms(estimator), "metrics": numbers(metrics), "seen": seen}


@case
def early_stopping_restores_the_best(make: Any, part: Any, folder: Path) -> Result:
    from estimator_hooks import stop_if_no_decrease_hook

    estimator = make(learning_rate=0.5)
    hook = stop_if_no_decrease_hook(estimator, "loss", 4, run_every_steps=2, restore_best=True)
    metrics, _ = ec.train_and_evaluate(estimator, *specs(part, hooks=[hook], steps=40))
    return {**norms(estimator), "metrics": numbers(metrics), "reason": estimator.stop_reason}


@case
def hooks_evaluate_and_write(make: Any, part: Any, folder: Path) -> Result:
    from estimator_hooks import GradientNormHook, HistoryHook, InMemoryEvaluatorHook

    estimator = make()
    hooks = [
        InMemoryEvaluatorHook(estimator, models.eval_input(part(52)), every_n_iter=5),
        GradientNormHook(every_n_steps=5),
        HistoryHook(),
    ]
    estimator.train(models.train_input(part(32)), hooks=hooks, max_steps=STEPS)
    recorded = {step: numbers(metrics) for step, metrics in ec.read_eval_metrics(estimator.eval_dir()).items()}
    return {**norms(estimator), "recorded": recorded}


@case
def the_best_checkpoint_is_kept_and_warm_starts_another(make: Any, part: Any, folder: Path) -> Result:
    best = ec.KeepBest(metric="accuracy", mode="max")
    first = make(keep_checkpoint_max=1, keep_checkpoint_best=best)
    ec.train_and_evaluate(first, *specs(part))
    kept = sorted(int(path.name) for path in Path(first.model_dir, "checkpoints").iterdir() if path.name.isdigit())
    second = make(warm_start_from=first.model_dir)
    second.train(models.train_input(part(32)), max_steps=3)
    return {"kept": kept, **norms(second)}


@case
def accumulated_in_bfloat16(make: Any, part: Any, folder: Path) -> Result:
    estimator = make(accumulate_steps=2, precision="bfloat16")
    metrics, _ = ec.train_and_evaluate(estimator, *specs(part))
    return {"metrics": numbers(metrics), "step": norms(estimator)["step"]}


def experiment(make: Any, part: Any, **options: Any) -> Any:
    """Returns an Experiment with the usual inputs."""
    from estimator_experiment import Experiment

    told = {"train_steps": STEPS, "eval_delay_secs": 0, "continuous_eval_throttle_secs": 0, **options}
    return Experiment(make(), models.train_input(part(32)), models.eval_input(part(52)), **told)


@case
def schedule_train_and_evaluate(make: Any, part: Any, folder: Path) -> Result:
    one = experiment(make, part, min_eval_frequency=4, export_strategies=[Looks("final")])
    metrics, _ = one.train_and_evaluate()
    return {**norms(one.estimator), "metrics": numbers(metrics)}


@case
def schedule_continuous_train_and_eval(make: Any, part: Any, folder: Path) -> Result:
    one = experiment(make, part, train_steps_per_iteration=5)
    metrics, _ = one.continuous_train_and_eval()
    return {**norms(one.estimator), "metrics": numbers(metrics)}


@case
def schedules_one_by_one(make: Any, part: Any, folder: Path) -> Result:
    one = experiment(make, part)
    one.train(delay_secs=0)
    found = {name: numbers(getattr(one, name)()) for name in ("evaluate", "continuous_eval")}
    seen = experiment(functools.partial(make, model_dir=one.estimator.model_dir), part, eval_steps=3)
    return {**norms(one.estimator), **found, "on train data": numbers(seen.continuous_eval_on_train_data())}


@case
def schedule_test(make: Any, part: Any, folder: Path) -> Result:
    one = experiment(make, part, export_strategies=[Looks("tested")])
    metrics, _ = one.test()
    return {**norms(one.estimator), "metrics": numbers(metrics)}


@case
def learn_runner_without_a_schedule(make: Any, part: Any, folder: Path) -> Result:
    made: list[Any] = []

    def experiment_fn(config: Any, hparams: Any) -> Any:
        made.append(experiment(functools.partial(make, model_dir=config.model_dir), part))
        return made[-1]

    metrics, _ = ec.learn_runner.run(experiment_fn, output_dir=str(folder / "own"))
    return {**norms(made[-1].estimator), "metrics": numbers(metrics)}


@case
def everything_together(make: Any, part: Any, folder: Path) -> Result:
    """Runs an Experiment with a warm start, accumulation, early stopping, the best checkpoint and two exporters."""
    from estimator_hooks import stop_if_no_decrease_hook

    first = make()
    first.train(models.train_input(part(32)), max_steps=3)
    best = ec.KeepBest(metric="accuracy", mode="max")
    estimator = make(
        learning_rate=0.5,
        warm_start_from=first.model_dir,
        accumulate_steps=2,
        keep_checkpoint_max=2,
        keep_checkpoint_best=best,
    )
    stops = stop_if_no_decrease_hook(estimator, "loss", 4, run_every_steps=2, restore_best=True)
    looks = [Looks("one"), Looks("two")]
    one = experiment(
        lambda: estimator, part, train_hooks=[stops], min_eval_frequency=4, export_strategies=looks, train_steps=40
    )
    metrics, _ = one.train_and_evaluate()
    seen = {
        f"{path.parent.name}/{path.name}": json.loads(path.read_text())
        for path in sorted(Path(estimator.model_dir).glob("export/*/*.json"))
    }
    kept = sorted(int(path.name) for path in Path(estimator.model_dir, "checkpoints").iterdir() if path.name.isdigit())
    told = {"metrics": numbers(metrics), "reason": estimator.stop_reason, "kept": kept, "seen": seen}
    return {**norms(estimator), **told}


@case
def canned_tabular(make: Any, part: Any, folder: Path) -> Result:
    from estimator_canned_tabular import DNNClassifier, numeric_column

    columns = [numeric_column("x", shape=(models.FEATURES,))]
    estimator = DNNClassifier([16, 8], columns, n_classes=models.CLASSES, dropout=0.2, config=make().config)
    metrics, _ = ec.train_and_evaluate(estimator, *specs(part))
    rows = estimator.predict(models.eval_input(part(52)), predict_keys=["class_ids"])
    return {**norms(estimator), "metrics": numbers(metrics), "classes": [int(row["class_ids"][0]) for row in rows]}


def main(settings: dict[str, Any]) -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s")
    results: Result = {}
    process = 0
    for name in settings["cases"] or list(CASES):
        folder, made = Path(settings["folder"], name), iter(range(10))

        def make(
            *,
            folder: Path = folder,
            made: Any = made,
            model_dir: str | None = None,
            learning_rate: float = 1e-2,
            warm_start_from: Any = None,
            **config: Any,
        ) -> ec.Estimator:
            options = {"tf_random_seed": 1, "save_checkpoints_steps": 4, "log_step_count_steps": None} | config
            directory = model_dir or str(folder / str(next(made)))
            return ec.Estimator(
                models.classifier,
                config=ec.RunConfig(model_dir=directory, mesh=settings["mesh"], **options),
                params={"width": 16, "dropout": True, "learning_rate": learning_rate},
                warm_start_from=warm_start_from,
            )

        devices = make()._devices
        parts, process = input_context(devices).num_input_pipelines, devices.processes.index
        results[name] = CASES[name](make, lambda size, parts=parts: size // parts, folder)
    Path(f"{settings['out']}.{process}.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
