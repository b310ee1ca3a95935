"""The experiment that a configuration describes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from estimator_core.errors import ArgumentError, PluginLookupError, did_you_mean
from estimator_core.plugins import Plugins, default_plugins
from estimator_experiment.hparams import HParams
from estimator_experiment.program import Program, load_program
from estimator_runs.configuration.layers import KeyPath, Resolved
from estimator_runs.configuration.problems import ConfigurationError, Problem, at
from estimator_runs.configuration.run_config import run_config_fields
from estimator_runs.configuration.schema import Component, Configuration, Input, ProgramFile
from estimator_runs.configuration.targets import call, find_object


def build_program(found: Configuration, resolved: Resolved, path: Path) -> Program:
    """Returns the program that a configuration describes, for `estimator run`.

    Args:
        found: the configuration.
        resolved: its values and their origins.
        path: the path of the file. The run has its name.

    Raises:
        ConfigurationError: the configuration names code, components or arguments that do not exist.
    """
    program = None if found.program is None else _of_file(found.program, resolved)  # first: others may name code of it
    fields = run_config_fields(found, resolved)
    plugins = plugins_of(found)
    _check_components(found, resolved, plugins)
    receiver = _receiver(found, resolved)
    if program is not None:
        make, hparams = program.experiment_fn, _replaced(program.default_hparams, found, resolved)
        receiver = receiver or program.serving_input_receiver_fn
    else:
        make = _experiment_fn(found, resolved, plugins)
        hparams = _hparams(found, resolved) if found.hparams else None

    def experiment_fn(run_config: Any, params: Any) -> Any:
        from estimator_experiment.learn_runner import checked_experiment

        experiment = checked_experiment(make(run_config, params))
        _add_components(experiment, found, resolved, plugins, receiver)
        return experiment

    return Program(
        path=path,
        experiment_fn=experiment_fn,
        default_hparams=hparams,
        serving_input_receiver_fn=receiver,
        settings=fields,
    )


def plugins_of(found: Configuration) -> Plugins:
    """Returns the plugins that a configuration allows."""
    if found.plugins is None:
        return default_plugins()
    said = found.plugins
    return Plugins(only=said.only, block=said.block, options=said.options)


def _of_file(said: ProgramFile, resolved: Resolved) -> Program:
    file = resolved.origin(("program", "file")).directory / said.file
    if not file.is_file():
        beside = [each.name for each in file.parent.glob("*.py")] if file.parent.is_dir() else []
        text = f"there is no file {str(file)!r}.{did_you_mean(file.name, beside)}"
        raise ConfigurationError([at(resolved, ("program", "file"), text)])
    try:
        program = load_program(f"{file}:{said.function}" if said.function != "experiment_fn" else str(file))
    except ArgumentError as error:
        raise ConfigurationError([at(resolved, ("program", "function"), str(error))]) from None
    if file.suffix == ".py" and file.stem in sys.modules:  # a configuration file has none
        resolved.modules[file.resolve()] = sys.modules[file.stem]
    return program


def _hparams(found: Configuration, resolved: Resolved) -> HParams:
    """Returns the hyperparameters of a configuration. Some names are reserved."""
    hparams, problems = HParams(), list[Problem]()
    for name, value in found.hparams.items():
        try:
            hparams.add_hparam(name, value)
        except ArgumentError as error:
            problems.append(at(resolved, ("hparams", name), f"{error}. Give it another name."))
    if problems:
        raise ConfigurationError(problems)
    return hparams


def _replaced(defaults: HParams | None, found: Configuration, resolved: Resolved) -> HParams | None:
    """Returns the hyperparameters of the program, with those of the configuration in their place."""
    if defaults is None:
        if found.hparams:
            text = "the program defines no HPARAMS, so there is nothing to replace."
            raise ConfigurationError([at(resolved, ("hparams",), text)])
        return None
    values = HParams(**defaults.values())
    known = list(values.values())
    problems = [
        at(resolved, ("hparams", name), f"the program has no such hyperparameter.{did_you_mean(name, known)}")
        for name in found.hparams
        if name not in values
    ]
    for name, value in found.hparams.items():
        if name in values:
            try:
                values.set_hparam(name, value)
            except ArgumentError as error:
                problems.append(at(resolved, ("hparams", name), str(error)))
    if problems:
        raise ConfigurationError(problems)
    return values


def _experiment_fn(found: Configuration, resolved: Resolved, plugins: Plugins) -> Callable[[Any, Any], Any]:
    from estimator_experiment.experiment import Experiment

    assert found.inputs is not None
    train, evaluation = found.inputs.train, found.inputs.eval or found.inputs.train
    at_eval: KeyPath = ("inputs", "eval" if found.inputs.eval else "train")
    at_train: KeyPath = ("inputs", "train")

    def experiment_fn(run_config: Any, params: Any) -> Any:
        return Experiment(
            _estimator(found, resolved, plugins, run_config, params),
            build_input(train, resolved, at_train, plugins),
            build_input(evaluation, resolved, at_eval, plugins),
            train_steps=found.train.max_steps,
            eval_steps=found.evaluate.steps,
            min_eval_frequency=found.evaluate.every_steps,
            eval_hooks=[
                _made(hook, resolved, ("evaluate", "hooks", place), "hook", plugins)
                for place, hook in enumerate(found.evaluate.hooks)
            ],
        )

    return experiment_fn


def _estimator(found: Configuration, resolved: Resolved, plugins: Plugins, run_config: Any, params: Any) -> Any:
    from estimator_core.estimator import Estimator

    model = found.model
    assert model is not None
    if model.function is not None:
        model_fn = find_object(resolved, ("model", "function"), model.function)
        return Estimator(model_fn, config=run_config, params=params, plugins=plugins)
    make = plugins.get("model", str(model.component))
    return call(resolved, ("model", "args"), make, model.args, config=run_config, plugins=plugins)


def build_input(one: Input, resolved: Resolved, path: KeyPath, plugins: Plugins) -> Callable[..., Any]:
    """Returns the input_fn that a table describes.

    Raises:
        ConfigurationError: the table names code, components or arguments that do not exist.
    """
    if one.function is not None:
        return find_object(resolved, (*path, "function"), one.function)
    if one.call is not None:
        make = find_object(resolved, (*path, "call"), one.call)
    else:
        make = plugins.get("input", str(one.component))
    return call(resolved, (*path, "args"), make, one.args)


def _made(one: Component, resolved: Resolved, path: KeyPath, kind: str, plugins: Plugins) -> Any:
    return call(resolved, (*path, "args"), plugins.get(kind, one.name), one.args)


def _add_components(
    experiment: Any, found: Configuration, resolved: Resolved, plugins: Plugins, receiver: Callable[[], Any] | None
) -> None:
    experiment.extend_train_hooks(
        [_made(hook, resolved, ("hooks", place), "hook", plugins) for place, hook in enumerate(found.hooks)]
    )
    if not found.exporters:
        return
    if receiver is None:
        text = "need to know what requests look like: write [serving], or serving_input_receiver_fn in the program."
        raise ConfigurationError([at(resolved, ("exporters",), text)])
    made: list[Any] = [
        call(
            resolved,
            ("exporters", place, "args"),
            plugins.get("exporter", one.name),
            one.args,
            name=one.name,
            serving_input_receiver_fn=receiver,
        )
        for place, one in enumerate(found.exporters)
    ]
    experiment.reset_export_strategies([*experiment.reset_export_strategies(), *made])


def _receiver(found: Configuration, resolved: Resolved) -> Callable[[], Any] | None:
    serving = found.serving
    if serving is None:
        return None
    if serving.function is not None:
        return find_object(resolved, ("serving", "function"), serving.function)

    def receiver() -> Any:
        from estimator_core import export

        features = {
            name: export.Feature(tuple(None if size < 0 else size for size in one.shape), one.dtype)
            for name, one in serving.features.items()
        }
        return export.build_raw_serving_input_receiver_fn(features)()

    return receiver


def _check_components(found: Configuration, resolved: Resolved, plugins: Plugins) -> None:
    """Checks that every named component exists, without importing any."""
    asked: list[tuple[str, str | None, KeyPath]] = [
        *(("hook", one.name, ("hooks", place)) for place, one in enumerate(found.hooks)),
        *(("hook", one.name, ("evaluate", "hooks", place)) for place, one in enumerate(found.evaluate.hooks)),
        *(("exporter", one.name, ("exporters", place)) for place, one in enumerate(found.exporters)),
        *([("model", found.model.component, ("model", "component"))] if found.model else []),
    ]
    inputs: Mapping[str, Input | None] = {} if found.inputs is None else dict(found.inputs)
    asked += [("input", one.component, ("inputs", name, "component")) for name, one in inputs.items() if one]
    problems = []
    for kind, name, path in asked:
        try:
            if name is not None:
                plugins.find(kind, name)
        except PluginLookupError as error:
            problems.append(at(resolved, path, " ".join(str(error).split())))
    if problems:
        raise ConfigurationError(problems)
