"""The checks of `PluginSuite`, as functions: `estimator plugins doctor` runs them without pytest.

Each check takes the findings about the plugin and yields its faults, in one sentence each.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import re
import socket
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any, TypeVar
from unittest import mock

from packaging.requirements import Requirement

from estimator_core import hookspecs
from estimator_core.cli import command_names
from estimator_core.errors import ArgumentError, EstimatorError
from estimator_core.plugins import PluginRecord, Plugins, default_plugins
from estimator_testing._core import builtin_candidate, import_target, installed_candidates, normalise, remedy
from estimator_testing.fake_run import FakeRun
from estimator_testing.probe import ProbeReport, probe
from estimator_testing.text_forms import needs_a_program

_Plugin = TypeVar("_Plugin")
MOST_SUMMARY_CHARACTERS = 100
#: The kinds that are made from names in text, and the arguments that are added before those of the user.
_MADE_BY_NAME = {"hook": (), "exporter": ("name", "serving_input_receiver_fn")}


@dataclass(frozen=True, kw_only=True)
class Examined:
    """A plugin under examination.

    Attributes:
        record: the record of the loader about the plugin.
        again: the record of a second load.
        plugin: the module of the plugin, or None if it did not load.
        reports: the reports of fresh processes about its import, with two hash seeds. Empty if it did not load.
    """

    record: PluginRecord
    again: PluginRecord
    plugin: Any
    reports: tuple[ProbeReport, ...]


def examine_plugin(name: str) -> Examined:
    """Loads an installed plugin twice here and twice in fresh processes.

    Args:
        name: the name of the entry point or of the distribution.

    Raises:
        ArgumentError: no such plugin is installed.
    """
    module, _ = installed_module(name)
    # Fresh processes come first, because effects of the import on this process must not reach them.
    reports = _probed(module)
    record, again = _record(name), _record(name)
    plugin = import_target(module) if record.usable else None
    return Examined(record=record, again=again, plugin=plugin, reports=reports if plugin is not None else ())


def check_loads(examined: Examined) -> Iterator[str]:
    """It can be imported, keeps the contract, and is the same when loaded twice."""
    if not examined.record.usable:
        yield f"{examined.record.status}: {examined.record.error}"
    if examined.record.components != examined.again.components or examined.record.status != examined.again.status:
        yield "loading it a second time returned something else"


def check_import_is_light(examined: Examined) -> Iterator[str]:
    """Its import imports no heavy package, because every start of every command would take longer."""
    for report in examined.reports[:1]:
        if report.heavy:
            yield f"importing {examined.record.module} imports {', '.join(report.heavy)}; import them where used"


def check_import_is_silent(examined: Examined) -> Iterator[str]:
    """Its import prints nothing."""
    for report in examined.reports[:1]:
        if report.output.strip():
            yield f"importing {examined.record.module} prints {report.output.strip()[:80]!r}"


def check_import_changes_nothing(examined: Examined) -> Iterator[str]:
    """Its import changes nothing in the process: no environment, threads, logging, signals."""
    for report in examined.reports[:1]:
        yield from (f"importing {examined.record.module}: {change}" for change in report.changes)


def check_order_is_fixed(examined: Examined) -> Iterator[str]:
    """Its declarations have the same order in every process."""
    if len({tuple(report.declared) for report in examined.reports}) > 1:
        yield "the order of its declarations differs between processes; sort the elements of sets"


def check_targets_exist(examined: Examined) -> Iterator[str]:
    """Every component's target can be imported and called."""
    for component in examined.record.components:
        try:
            target = import_target(component.target)
        except Exception as error:
            yield f"{component.kind} {component.name!r}: {component.target} cannot be imported: {error}"
        else:
            if not callable(target):
                yield f"{component.kind} {component.name!r}: {component.target} is {target!r}, which cannot be called"


def check_needs(examined: Examined) -> Iterator[str]:
    """A hook or exporter that cannot be made from a name and arguments as text declares what it needs."""
    for component in examined.record.components:
        if component.kind not in _MADE_BY_NAME or component.needs:
            continue
        try:
            target = import_target(component.target)
            signature = inspect.signature(target)
        except Exception:
            continue  # another check reports that it cannot be imported
        given = _MADE_BY_NAME[component.kind]
        if not _takes_first(signature, given):
            yield (
                f"{component.kind} {component.name!r} must begin with the arguments {' and '.join(given)}: the command "
                f"line passes them by position, and a file by name. It takes {signature}. Declare Component(..., "
                'needs="...") if only a program can make it'
            )
        for parameter in list(signature.parameters.values())[len(given) :]:
            if needs_a_program(target, parameter):
                yield (
                    f"{component.kind} {component.name!r} needs {parameter.name}: {parameter.annotation}, which "
                    f'cannot be written on a command line; declare Component(..., needs="...") or give it a default'
                )


def check_commands_work(examined: Examined) -> Iterator[str]:
    """Every command's module has `configure(parser)` and `run(args)`, and a docstring to describe it."""
    for command in examined.record.commands:
        try:
            module = import_target(command.target)
            module.configure(argparse.ArgumentParser(prog=command.name, description=module.__doc__ or ""))
        except Exception as error:
            yield f"command {command.name!r}: {command.target}: {error}"
            continue
        if not callable(getattr(module, "run", None)):
            yield f"command {command.name!r}: {command.target} has no run(args)"
        if not module.__doc__:
            yield f"command {command.name!r}: {command.target} has no docstring; it is the text of --help"


def check_names_are_free(examined: Examined) -> Iterator[str]:
    """No other installed plugin, nor the core, offers anything of the same kind and name."""
    yield from (note for note in examined.record.notes if "is also provided by" in note)
    owner, known = examined.record.owner, command_names()
    for command in examined.record.commands:
        if f"{owner}:{command.name}" in known:  # the bare name means another command, or several
            own = owner, examined.record.name
            records = [one for one in default_plugins().records() if (one.owner, one.name) != own]
            others = [one for one in records if command.name in {each.name for each in one.commands}]
            labels = ", ".join(one.label for one in others) or "estimator-core"
            advice = remedy(command.name, [examined.record, *others])
            yield f"command {command.name!r} is also provided by {labels}; {advice}"


def check_summaries(examined: Examined) -> Iterator[str]:
    """Everything that it declares has a description of one line."""
    records = [*examined.record.components, *examined.record.commands]
    texts = {**{one.name: one.summary for one in records}, **{one.name: one.help for one in examined.record.options}}
    for name, text in texts.items():
        if not text.strip() or "\n" in text or len(text) > MOST_SUMMARY_CHARACTERS:
            yield f"{name!r}: the summary must be one line of 1 to {MOST_SUMMARY_CHARACTERS} characters; it is {text!r}"


def check_signatures(examined: Examined) -> Iterator[str]:
    """The arguments of its hook functions are in the specification, without defaults. Annotations, if any, agree."""
    for name in _of_the_core(examined):
        specification = inspect.signature(getattr(hookspecs, name)).parameters
        for parameter in inspect.signature(getattr(examined.plugin, name)).parameters.values():
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.POSITIONAL_ONLY):
                yield f"{name} takes {parameter}; name the arguments it needs"
            elif parameter.default is not parameter.empty:
                yield f"{name} has a default for {parameter.name}, which is never used"
            elif not _annotated_alike(parameter, specification[parameter.name]):
                expected = specification[parameter.name].annotation
                yield f"{name} annotates {parameter.name} as {parameter.annotation}; it receives {expected}"


def check_run_hooks(examined: Examined) -> Iterator[str]:
    """Its run-level hooks work on a run of each mode, and return new Hook objects each time."""
    if not any(name not in _DECLARATIONS for name in _of_the_core(examined)):
        return
    plugins = _with_what_it_needs(examined.record, strict=True)
    for mode in ("train", "eval", "infer"):
        try:
            first, second = plugins.run_hooks(FakeRun(mode=mode)), plugins.run_hooks(FakeRun(mode=mode))
            if any(one is other for one in first for other in second):
                yield f"estimator_run_hooks returns one hook object to two runs (mode {mode}); make a new one each time"
            _observe_all(plugins, FakeRun(mode=mode))
        except EstimatorError as error:
            yield f"mode {mode}: {error}"


def check_network_is_declared(examined: Examined) -> Iterator[str]:
    """It declares "network" if its run-level hooks look up or connect to another machine."""
    if "network" in examined.record.capabilities or all(name in _DECLARATIONS for name in _of_the_core(examined)):
        return
    plugins, asked = _with_what_it_needs(examined.record), list[str]()

    def refuse(*arguments: Any, **named: Any) -> Any:
        asked.append("it uses the network in runs")
        raise OSError("the network is not declared")

    with (
        mock.patch.object(socket.socket, "connect", refuse),
        mock.patch.object(socket.socket, "connect_ex", refuse),
        mock.patch.object(socket.socket, "sendto", refuse),
        mock.patch.object(socket, "getaddrinfo", refuse),
    ):
        for mode in ("train", "eval", "infer"):
            with contextlib.suppress(EstimatorError):  # another check reports it
                plugins.run_hooks(FakeRun(mode=mode))
                _observe_all(plugins, FakeRun(mode=mode))
    if asked:
        yield f'{asked[0]}, but does not declare it: add "network" to what estimator_capabilities() returns'


def check_requires_the_core(examined: Examined) -> Iterator[str]:
    """Its distribution requires estimator-core within two bounds, and the packages that define its kinds."""
    if examined.record.distribution is None or examined.record.status == "built-in":
        return
    requirements = metadata.requires(examined.record.distribution) or []
    own = [one for one in requirements if re.match(r"estimator-core\b", normalise(one)) and "extra ==" not in one]
    if not own:
        yield f"{examined.record.distribution} does not require estimator-core; add it to `dependencies`"
    elif not any(">" in one and "<" in one for one in own):
        yield f"{examined.record.distribution} requires {own[0]!r}; give a lower and an upper bound"
    required = {normalise(re.split(r"[^\w.-]", one)[0]) for one in requirements}
    for definer in _definers(examined.record):
        if normalise(definer) not in required:
            yield (
                f"{examined.record.distribution} does not require {definer}, which defines a kind of its "
                "components: without that package, the plugin is left out; add it to `dependencies`"
            )


def check_requirements_are_met(examined: Examined) -> Iterator[str]:
    """The packages that its distribution requires are installed, in versions that it accepts."""
    if examined.record.distribution is None:
        return
    for need in map(Requirement, metadata.requires(examined.record.distribution) or ()):
        if need.marker is not None and not need.marker.evaluate({"extra": ""}):
            continue
        try:
            found = metadata.version(need.name)
        except metadata.PackageNotFoundError:
            found = None
        if found is None or not need.specifier.contains(found, prereleases=True):
            told = f"which is not {need.name} {found}, the installed version" if found else "which is not installed"
            yield f'{examined.record.distribution} requires {need}, {told}; pip install "{need.name}{need.specifier}"'


CHECKS: tuple[Callable[[Examined], Iterator[str]], ...] = (
    check_loads,
    check_import_is_light,
    check_import_is_silent,
    check_import_changes_nothing,
    check_order_is_fixed,
    check_targets_exist,
    check_needs,
    check_commands_work,
    check_names_are_free,
    check_summaries,
    check_signatures,
    check_run_hooks,
    check_network_is_declared,
    check_requires_the_core,
    check_requirements_are_met,
)

#: The group of entry points in which a package names its plugin module.
_GROUP = "estimator.plugins"
_DECLARATIONS = (
    "estimator_components",
    "estimator_commands",
    "estimator_options",
    "estimator_capabilities",
    "estimator_kinds",
    "estimator_hookspecs",
)


def installed_module(name: str) -> tuple[str, str | None]:
    """Returns the module of an installed plugin, which is not imported yet, and its distribution."""
    candidates = [builtin_candidate(), *installed_candidates()]
    found = _first_named(name, candidates, lambda one: one.distribution or "", lambda one: one.name)
    if found is not None:
        return found.module, found.distribution
    raise ArgumentError(_why_absent(name, [candidate.distribution or candidate.name for candidate in candidates]))


def names_to_examine(name: str) -> list[str]:
    """Returns `distribution:entry-point` for each entry point of a distribution with several, else the name itself."""
    found = [one.name for one in installed_candidates() if normalise(one.distribution or "") == normalise(name)]
    return [f"{name}:{one}" for one in found] if len(found) > 1 else [name]


def _why_absent(name: str, installed: list[str]) -> str:
    """Returns why a plugin does not exist: it is not installed, or its entry point is in no group of plugins."""
    try:
        found = metadata.distribution(name)
    except (metadata.PackageNotFoundError, ValueError):
        return f"no plugin {name!r} is installed; installed are {', '.join(installed)}"
    groups = sorted({entry.group for entry in found.entry_points})
    return (
        f"{name} {found.version} is installed, but has no entry point in the group {_GROUP!r}, only in: "
        f"{', '.join(groups) or 'none'}. Its pyproject.toml needs [project.entry-points.{_GROUP!r}], and it must be "
        "installed again."
    )


def _of_the_core(examined: Examined) -> list[str]:
    """Returns the hook functions that the core specifies. Other plugins check their own."""
    return [name for name in examined.record.hooks if hasattr(hookspecs, name)]


def _definers(record: PluginRecord, hooks: Collection[str] = ()) -> list[str]:
    """Returns the other distributions that define the kinds of its components, or one of these specifications."""
    kinds = {component.kind for component in record.components}
    return [
        one.owner
        for one in Plugins().records()
        if (kinds & {kind.name for kind in one.kinds} or set(hooks) & set(one.specs)) and one.owner != record.owner
    ]


def _with_what_it_needs(record: PluginRecord, *, strict: bool = False) -> Plugins:
    """Returns a plugin, and the plugins without which it does not load."""
    return Plugins(only=[record.owner, *_definers(record, record.hooks)], strict=strict)


def _probed(module: str) -> tuple[ProbeReport, ...]:
    """Returns the reports of two fresh processes. Empty if the import fails, because the loader's error is clearer."""
    try:
        return tuple(probe(module, hash_seed=seed) for seed in (1, 2))
    except RuntimeError:
        return ()


def _record(name: str) -> PluginRecord:
    records = Plugins(strict=False).records()
    found = _first_named(name, records, lambda one: one.owner, lambda one: one.name)
    assert found is not None, f"{name} is installed, but is not listed"
    return found


def _first_named(
    name: str, plugins: Sequence[_Plugin], distribution: Callable[[_Plugin], str], entry_point: Callable[[_Plugin], str]
) -> _Plugin | None:
    """Returns the plugin of a distribution, else that of an entry point, because any package may choose the name of an
    entry point. For a distribution with several, `distribution:entry-point` selects one.
    """
    for names in (distribution, entry_point, lambda one: f"{distribution(one)}:{entry_point(one)}"):
        for plugin in plugins:
            if normalise(names(plugin)) == normalise(name):
                return plugin
    return None


def _takes_first(signature: inspect.Signature, names: Sequence[str]) -> bool:
    """Returns whether a function accepts its first arguments by position, and by these names, as the same parameters.
    Parameters that collect others (`*args`, `**kwargs`) may hold them too.
    """
    collecting = {
        one.name for one in signature.parameters.values() if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    }
    try:
        by_position = signature.bind_partial(*names).arguments
        by_name = signature.bind_partial(**dict(zip(names, names, strict=True))).arguments
    except TypeError:
        return False
    return by_position.keys() - collecting == by_name.keys() - collecting and all(
        by_position[one] == by_name[one] for one in by_position.keys() - collecting
    )


def _annotated_alike(given: inspect.Parameter, expected: inspect.Parameter) -> bool:
    """Returns whether an annotation, if any, ends with the same name as in the specification, as in `core.Run`."""
    if given.annotation is given.empty:
        return True
    return _last_name(given.annotation) in (_last_name(expected.annotation), "Any")


def _last_name(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return text.strip("'\"").partition("[")[0].rpartition(".")[2]


def _observe_all(plugins: Plugins, run: FakeRun) -> None:
    plugins.run_start(run)
    plugins.checkpoint_saved(run, 0, "checkpoint")
    plugins.evaluation_finished(run, {"loss": 0.0, "global_step": 0})
    plugins.export_written(run.estimator, "export", "stablehlo")
    plugins.run_end(run, None)
    plugins.run_end(run, RuntimeError("a run that failed"))
