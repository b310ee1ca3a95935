"""The hook specifications: all functions that a plugin module may define.

A plugin module implements a specification by defining a function with its name (`estimator_...`). `hookimpl` is
required only to call an implementation first or last (`@hookimpl(tryfirst=True)`). Arguments may be omitted, but not
renamed. If several plugins implement one specification, they are called in the order of their entry-point names.
Declarations are called once, when the plugins are loaded. Each of the other functions describes when it is called. An
exception in a run-level hook is logged with the plugin's name and does not stop the run, unless plugins are strict
(`ESTIMATOR_STRICT_PLUGINS=1`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from estimator_core._plugins.records import Command, Component, Kind, Option
    from estimator_core.hooks import Hook, Run

__all__ = [
    "PLUGIN_API",
    "PREFIX",
    "PROJECT",
    "hookimpl",
    "hookspec",
    "estimator_capabilities",
    "estimator_checkpoint_saved",
    "estimator_commands",
    "estimator_components",
    "estimator_evaluation_finished",
    "estimator_export_written",
    "estimator_hookspecs",
    "estimator_kinds",
    "estimator_options",
    "estimator_rehearse",
    "estimator_run_end",
    "estimator_run_hooks",
    "estimator_run_start",
]

#: The project of the markers of pluggy.
PROJECT = "estimator"
#: The prefix of the names of all hook specifications.
PREFIX = "estimator_"
PLUGIN_API = (1, 3)
"""The contract version of this core, (major, minor). A plugin states its version as `ESTIMATOR_PLUGIN_API`."""

#: Marks a function of a plugin that implements a hook specification.
hookimpl = pluggy.HookimplMarker(PROJECT)
hookspec = pluggy.HookspecMarker(PROJECT)
"""Marks a hook specification of a plugin, see `estimator_hookspecs`."""


@hookspec
def estimator_components() -> Sequence[Component]:
    """Declares what users can look up by name: heads, hooks, exporters, backends and the other `KINDS`.

    Called once, when the plugins are loaded. It must not import the components that it declares.

    Example:
        >>> from estimator_core.plugins import Component
        >>> def estimator_components():
        ...     return [Component(kind="hook", name="bell", target="acme.bell:BellHook", summary="Rings at the end.")]
    """
    raise NotImplementedError


@hookspec
def estimator_commands() -> Sequence[Command]:
    """Declares sub-commands of `estimator`.

    Called once, when the plugins are loaded.

    Example:
        >>> from estimator_core.plugins import Command
        >>> def estimator_commands():
        ...     return [Command(name="acme-login", target="acme.cli", summary="Log in to the tracker.")]
    """
    raise NotImplementedError


@hookspec
def estimator_options() -> Sequence[Option]:
    """Declares the plugin's own settings. The other functions receive the values as `options`.

    Called once, when the plugins are loaded.

    Example:
        >>> from estimator_core.plugins import Option
        >>> def estimator_options():
        ...     return [Option(name="url", type=str, default="", help="Address of the tracker.")]
    """
    raise NotImplementedError


@hookspec
def estimator_kinds() -> Sequence[Kind]:
    """Defines kinds of components that other plugins may provide, with their contracts and suites; since contract 1.1.

    Called once, when the plugins are loaded, before the components of any plugin are collected. It must not import the
    objects that it names.

    Example:
        >>> from estimator_core.plugins import Kind
        >>> def estimator_kinds():
        ...     return [
        ...         Kind(
        ...             name="sampler",
        ...             title="samplers",
        ...             contract="acme.samplers:Sampler",
        ...             target="a class whose call gives a Sampler",
        ...             suite="acme.testing:SamplerSuite",
        ...         )
        ...     ]
    """
    raise NotImplementedError


@hookspec
def estimator_capabilities() -> Sequence[str]:
    """Declares how the plugin affects runs that did not request it; since contract 1.2.

    Called once, when the plugins are loaded. The opening line of every run and its manifests list these capabilities. A
    plugin that does something undeclared is refused. A plugin for an older contract is treated as if it declared
    everything it implements, except "priority".

    - "adds_hooks": implements `estimator_run_hooks`.
    - "changes_batches": its hooks, or `estimator_run_hooks` itself, call `run.transform_batches`.
    - "reads_metrics": implements `estimator_evaluation_finished`.
    - "rehearses": implements `estimator_rehearse`.
    - "network": sends or fetches data during runs. A run does not enforce this declaration, but `PluginSuite` does.
    - "priority": its backends, module adapters and formats take precedence over those of the core and of other plugins,
      unless the user chooses.

    Example:
        >>> def estimator_capabilities():
        ...     return ["adds_hooks", "network"]
    """
    raise NotImplementedError


@hookspec
def estimator_hookspecs() -> Any:
    """Defines hook specifications that other plugins may implement; since contract 1.1.

    Called once, when the plugins are loaded, before implementations are collected. Returns a module or class whose
    specifications are marked with `hookspec`. An implementation whose name does not begin with `estimator_` must be
    marked with `hookimpl`. The plugin that defines a specification calls it with `Plugins.call`.

    Example:
        >>> from estimator_core.plugins import hookspec
        >>> class Specifications:
        ...     @hookspec
        ...     def acme_batch_drawn(self, size: int) -> None: ...
        >>> def estimator_hookspecs():
        ...     return Specifications
    """
    raise NotImplementedError


@hookspec
def estimator_rehearse(
    estimator: Any, train_spec: Any, eval_specs: Sequence[Any], options: Mapping[str, Any]
) -> Sequence[Exception]:
    """Returns the errors that a `train_and_evaluate` call would raise later; since contract 1.3.

    Called in a process that trains, before anything is written or computed. If any plugin returns errors, the run is
    refused and all of them are shown. `RunConfig.default_hooks` disables it for all packages or for some.

    Args:
        estimator: the Estimator.
        train_spec: the TrainSpec.
        eval_specs: the EvalSpecs.
        options: the plugin's own options by name.

    Example:
        >>> def estimator_rehearse(train_spec):
        ...     return [] if train_spec.max_steps else [ValueError("This cluster needs TrainSpec(max_steps=...).")]
    """
    raise NotImplementedError


@hookspec
def estimator_run_hooks(run: Run, options: Mapping[str, Any]) -> Sequence[Hook]:
    """Returns hooks for every train, evaluate and predict call.

    They run after the hooks of the core and before those of the user.

    Called once per call, before `begin` of any hook. Return new objects each time. Check `run.mode` to add hooks only
    to some calls.

    Args:
        run: the call that starts. Its state is not ready yet.
        options: the plugin's own options by name.

    Example:
        >>> from estimator_core.hooks import Hook
        >>> def estimator_run_hooks(run):
        ...     return [Hook()] if run.mode == "train" else []
    """
    raise NotImplementedError


@hookspec
def estimator_run_start(run: Run, options: Mapping[str, Any]) -> None:
    """Observes the start of a train, evaluate or predict call.

    Called after `estimator_run_hooks` and before `begin` of the hooks.

    Args:
        run: the call that starts. Its state is not ready yet.
        options: the plugin's own options by name.

    Example:
        >>> def estimator_run_start(run):
        ...     print("starting", run.mode, run.model_dir)
    """


@hookspec
def estimator_run_end(run: Run, error: BaseException | None, options: Mapping[str, Any]) -> None:
    """Observes the end of a call. Called after `end` of the hooks and after the input is closed, even after an error.

    Args:
        run: the call that ended.
        error: the exception that ended the call; None after success.
        options: the plugin's own options by name.

    Example:
        >>> def estimator_run_end(run, error):
        ...     print("ended at step", run.step, "failed" if error else "well")
    """


@hookspec
def estimator_checkpoint_saved(run: Run, step: int, path: str, options: Mapping[str, Any]) -> None:
    """Observes that a checkpoint was committed to disk.

    Called once per commit, even if the run fails later. The call comes between two steps soon after the commit, or at
    the end of the run. A checkpoint whose commit failed is not announced.

    Args:
        run: the training call that saved it.
        step: the global step saved.
        path: directory of the checkpoint.
        options: the plugin's own options by name.

    Example:
        >>> def estimator_checkpoint_saved(step, path):
        ...     print("saved", step, path)
    """


@hookspec
def estimator_evaluation_finished(run: Run, metrics: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Observes the result of an evaluation.

    Args:
        run: the evaluate call. `run.name` is the name of the evaluation.
        metrics: the result of `evaluate`: values by metric name, including `global_step`.
        options: the plugin's own options by name.

    Example:
        >>> def estimator_evaluation_finished(run, metrics):
        ...     print(run.name, metrics["loss"])
    """


@hookspec
def estimator_export_written(estimator: Any, path: str, format_name: str, options: Mapping[str, Any]) -> None:
    """Observes an export that was written, read back and compared with the estimator.

    Args:
        estimator: the Estimator that was exported.
        path: directory of the export.
        format_name: name of the export format.
        options: the plugin's own options by name.

    Example:
        >>> def estimator_export_written(path, format_name):
        ...     print("exported", format_name, path)
    """
