"""What the policy file of a project says about plugins: where it is, and the record that its reader returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from estimator_core._moved import POLICY_READER, import_moved
from estimator_core.errors import PluginError

FILE = "estimator.toml"
NAMED = "ESTIMATOR_POLICY"
#: What marks the folder of a project. No policy file is looked for above it.
_ROOTS = (".git", "pyproject.toml")


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What a policy says. What it forbids stays forbidden, whatever later settings say.

    Attributes:
        files: the files it was read from; empty without any.
        allow: names of distributions that may load; None: all.
        block: names of distributions that may not load.
        options: options of plugins, by distribution and name; those of the code, the environment and the command line
            override them.
        default_hooks: as in RunConfig; what it leaves out joins no run.
        overrides: the distribution that provides a component, by `kind.name`; `distribution:name` for another name.
        strict: whether a broken plugin is an error; False leaves it to other settings.
        locks: lock files; all of them apply.

    Example:
        >>> Policy(allow=("acme-heads",)).allow
        ('acme-heads',)
    """

    files: tuple[str, ...] = ()
    allow: tuple[str, ...] | None = None
    block: tuple[str, ...] = ()
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    default_hooks: bool | tuple[str, ...] = True
    overrides: Mapping[str, str] = field(default_factory=dict[str, str])
    strict: bool = False
    locks: tuple[str, ...] = ()


NO_POLICY = Policy()


def policy_files(environ: Mapping[str, str], folder: Path) -> list[str]:
    """The policy files that apply: that of the project of a folder, and the one that the environment names."""
    places = (folder, *folder.parents)
    roots = (depth for depth, place in enumerate(places) if any((place / mark).exists() for mark in _ROOTS))
    project = places[: next(roots, 0) + 1]  # outside a project, a file further up belongs to other code
    found = [str(place / FILE) for place in project if (place / FILE).is_file()]
    return found[:1] + [name for name in [environ.get(NAMED, "")] if name]


def policy_of(files: list[str]) -> Policy:
    """The combined policy of some files. Without files, nothing is imported.

    Raises:
        PluginError: the package that reads them is not installed. An unread policy would forbid nothing.
    """
    if not files:
        return NO_POLICY
    module, distribution = POLICY_READER
    try:
        reader = import_moved(module, distribution, f"the reader of {', '.join(files)}")
    except ModuleNotFoundError as error:
        raise PluginError(f"this project has a policy: {error}") from error
    return reader.read_policy(files)
