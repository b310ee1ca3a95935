"""Finds installed plugins by their entry points, without importing any of them, and names the plugin of an error."""

from __future__ import annotations

import contextlib
import functools
import importlib
import re
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

from estimator_core._plugins.plugin_code import code_hash, package_folder
from estimator_core._plugins.settings import PluginSettings, normalise, policy_files, policy_of, resolve_settings

GROUP = "estimator.plugins"
#: The prefix of the name of a plugin passed in code. Names of distributions do not contain colons.
CODE = "code:"
#: The distribution of an entry point without one in its metadata.
_NAMELESS = "unnamed"


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A plugin that could be loaded. `load()` imports and returns its module (or object).

    The lists of the settings apply to installed plugins, but not to those of the core or those passed in code.
    """

    name: str
    distribution: str | None
    version: str | None
    load: Callable[[], Any]
    module: str = ""
    builtin: bool = False
    given: bool = False
    installed: metadata.Distribution | None = None
    belongs_to: str = ""  # the installed distribution whose module was passed in code

    @property
    def key(self) -> str:
        """A unique name among candidates, because two distributions may use one entry-point name."""
        return f"{self.distribution or 'code'}:{self.name}"

    @property
    def identity(self) -> str:
        """The name in lists and options: the distribution, or the plugin name without one."""
        return self.distribution or self.name


def installed_candidates() -> list[Candidate]:
    """Returns every installed plugin, sorted by entry-point name and distribution, whatever the order of metadata."""
    found: dict[tuple[str, str], Candidate] = {}
    for entry in metadata.entry_points(group=GROUP):
        distribution, version = _named(entry.dist)
        candidate = Candidate(
            name=entry.name,
            distribution=distribution,
            version=version,
            load=entry.load,
            module=entry.value,
            installed=entry.dist,
        )
        found.setdefault((entry.name, normalise(distribution)), candidate)
    return [found[key] for key in sorted(found)]


def installed_packages() -> list[str]:
    """Returns the import packages of installed plugins, sorted. None of them is imported."""
    return sorted({entry.module.partition(".")[0] for entry in metadata.entry_points(group=GROUP)})


def given_candidates(extra: Sequence[object], installed: Iterable[Candidate] = ()) -> list[Candidate]:
    """Plugins passed in code: modules, or objects with hook functions as attributes.

    A module of an installed plugin still belongs to that plugin.
    """
    known = list(installed)
    candidates: list[Candidate] = []
    for plugin in extra:
        name = _name_of(plugin)
        repeats = sum(one.name.partition("#")[0] == name for one in candidates)
        unique = f"{name}#{repeats + 1}" if repeats else name
        module = plugin.__name__ if isinstance(plugin, ModuleType) else type(plugin).__module__
        given = Candidate(
            name=unique,
            distribution=None,
            version=None,
            load=lambda plugin=plugin: plugin,
            given=True,
            module=module,
            belongs_to=_owner(module, known),
        )
        candidates.append(given)
    return candidates


def _owner(module: str, installed: Iterable[Candidate]) -> str:
    """Returns the distribution of the installed plugin next to a module; "" if there is none."""
    top, home = module.partition(".")[0], package_folder(module)
    near = (one for one in installed if re.match(rf"{re.escape(top)}\b", one.module))  # several may share a namespace
    return next((one.identity for one in near if package_folder(one.module) == home), "")


def refusal(candidate: Candidate, settings: PluginSettings) -> str | None:
    """Returns the reason why a candidate may not load; None if it may.

    A module passed in code does not have to be on an allow list. Blocked packages, and packages that the policy
    forbids, are always refused.
    """
    if candidate.given:
        return replace(settings, only=None).refusal(candidate.belongs_to) if candidate.belongs_to else None
    return None if candidate.builtin else settings.refusal(candidate.identity)


def allowed(candidates: Iterable[Candidate], settings: PluginSettings) -> list[Candidate]:
    """Returns the candidates that the settings allow."""
    return [one for one in candidates if refusal(one, settings) is None]


def plugins_to_lock(environ: Mapping[str, str]) -> list[dict[str, str]]:
    """Returns the result of `Plugins.versions()` for the installed plugins that the environment and the policy allow,
    even broken ones. None of them is imported, and no lock is read.
    """
    settings = resolve_settings(environ, policy=policy_of(policy_files(environ, Path.cwd())))
    return code_of(allowed([builtin_candidate(), *installed_candidates()], settings))


def code_of(candidates: Iterable[Candidate]) -> list[dict[str, str]]:
    """Identifies the code of plugins for manifests and lock files: `{"distribution", "version", "hash"}` each, sorted.

    Plugins passed in code are called `code:NAME` and have no version.
    """
    rows: dict[str, list[Candidate]] = {}
    for one in candidates:
        rows.setdefault(CODE + one.name if one.distribution is None else one.distribution, []).append(one)
    return [
        {
            "distribution": name,
            "version": own[0].version or "",
            "hash": code_hash(own[0].installed, [one.module for one in own]),
        }
        for name, own in sorted(rows.items())
    ]


def builtin_candidate() -> Candidate:
    """Returns the declarations of the core, in the same form as those of plugins."""
    return Candidate(
        name="core",
        distribution="estimator-core",
        version=core_version(),
        module="estimator_core._plugin",
        load=lambda: importlib.import_module("estimator_core._plugin"),
        builtin=True,
        installed=next(iter(metadata.distributions(name="estimator-core")), None),
    )


def core_version() -> str | None:
    """Returns the version of the installed core; None if it runs from a source tree without metadata."""
    try:
        return metadata.version("estimator-core")
    except metadata.PackageNotFoundError:
        return None


def made_for(error: BaseException, distribution: str | None) -> str:
    """Returns the required and the installed version of the core, if a plugin imports a name that this core lacks; else
    "".

    Args:
        error: the error of the import of the plugin.
        distribution: the distribution of the plugin. None for code that is not installed.
    """
    if not isinstance(error, ImportError) or not (error.name or "").startswith("estimator_core") or not distribution:
        return ""
    needs = [
        need
        for found in metadata.distributions(name=distribution)
        for need in found.requires or ()
        if need.lower().replace("_", "-").startswith("estimator-core")
    ]
    return f" ({distribution} requires {needs[0]}; this is estimator-core {core_version()})" if needs else ""


def note_origin(error: BaseException, where: str) -> None:
    """Records the origin of an error, unless a more precise one is known."""
    if not getattr(error, "_estimator_hook_noted", False):
        with contextlib.suppress(Exception):  # an error that does not accept notes stays unchanged
            error.add_note(where)
            error._estimator_hook_noted = True  # type: ignore[attr-defined]  # noqa: SLF001 - a mark of ours


@contextlib.contextmanager
def noting_origin(where: Callable[[], str]) -> Generator[None]:
    """Adds a note about the origin of an error in the block.

    `where` is called only for an error, as it searches packages.
    """
    try:
        yield
    except BaseException as error:
        note_origin(error, where())
        raise


def describe(hook: object, what: str = "hook") -> str:
    """Describes a hook or a similar object by class and package, for messages."""
    kind = type(hook)
    return f"{what} {kind.__qualname__} from {package_of_code(kind.__module__)}"


@functools.cache
def package_of_code(module: str) -> str:
    """Returns the name and version of the distribution of a module, for messages; the module if there is none."""
    top, home = module.partition(".")[0], package_folder(module)
    plugins = [entry for entry in metadata.entry_points(group=GROUP) if entry.module.partition(".")[0] == top]
    near = [entry for entry in plugins if package_folder(entry.module) == home]  # several may share a namespace
    named = ["estimator-core"] if top == "estimator_core" else [one.dist.name for one in near or plugins if one.dist]
    # An editable installation does not list its packages.
    found = set(named or metadata.packages_distributions().get(top, []))
    if len(found) != 1:
        return f"module {module}"
    (distribution,) = found
    try:
        return f"{distribution} {metadata.version(distribution)}"
    except metadata.PackageNotFoundError:
        return distribution


def _named(distribution: metadata.Distribution | None) -> tuple[str, str | None]:
    """Returns the name and version of a distribution. An entry-point name cannot replace them: it can be any name."""
    try:
        found = distribution and distribution.metadata
        return (found["Name"], found["Version"]) if found and "Name" in found else (_NAMELESS, None)
    except (OSError, TypeError, ValueError):  # a broken installation, without the metadata file
        return _NAMELESS, None


def _name_of(plugin: object) -> str:
    return getattr(plugin, "__name__", None) or type(plugin).__name__
