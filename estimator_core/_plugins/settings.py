"""Which plugins may load: three levers and a strict switch, from arguments or the environment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from estimator_core.errors import ArgumentError

ONLY = "ESTIMATOR_PLUGINS"
BLOCK = "ESTIMATOR_PLUGINS_BLOCK"
NO_AUTOLOAD = "ESTIMATOR_DISABLE_PLUGIN_AUTOLOAD"
STRICT = "ESTIMATOR_STRICT_PLUGINS"
TRACE = "ESTIMATOR_TRACE_PLUGINS"


@dataclass(frozen=True, kw_only=True)
class PluginSettings:
    """Which plugins may load. Names are those of distributions: anybody may give an entry point any name.

    Attributes:
        only: None: every installed plugin; else these alone.
        block: never these, even if `only` names them.
        strict: a broken plugin or a failing run-level hook raises.
        trace: every hook call is logged with its time.
    """

    only: tuple[str, ...] | None = None
    block: tuple[str, ...] = ()
    strict: bool = False
    trace: bool = False

    def refusal(self, identity: str) -> str | None:
        """Why a plugin may not load, None if it may; `identity` is the name of its distribution.

        Example:
            >>> PluginSettings(block=("Acme_Tracker",)).refusal("acme-tracker")
            'blocked by name (block list: Acme_Tracker)'
            >>> PluginSettings(only=()).refusal("acme-tracker")
            'the allow list is empty, as by --no-plugins'
        """
        if matches(self.block, identity):
            return f"blocked by name (block list: {', '.join(self.block)})"
        if self.only is not None and not matches(self.only, identity):
            empty = "the allow list is empty, as by --no-plugins"
            return f"not on the allow list ({', '.join(self.only)})" if self.only else empty
        return None

    def unmatched(self, installed: Iterable[str]) -> list[str]:
        """Names on the lists that no installed distribution with a plugin has."""
        known = {normalise(name) for name in installed}
        return [name for name in (*(self.only or ()), *self.block) if normalise(name) not in known]


def resolve_settings(
    environ: Mapping[str, str],
    *,
    only: Iterable[str] | None = None,
    block: Iterable[str] | None = None,
    autoload: bool | None = None,
    strict: bool | None = None,
) -> PluginSettings:
    """Settings from arguments, and from the environment where an argument is None.

    Example:
        >>> resolve_settings({"ESTIMATOR_PLUGINS": "acme-heads, acme-hooks ,"}).only
        ('acme-heads', 'acme-hooks')
        >>> resolve_settings({"ESTIMATOR_PLUGINS": ""}).only  # an empty list allows nothing
        ()
        >>> resolve_settings({}, autoload=False).only
        ()
    """
    listed = _names(environ[ONLY]) if ONLY in environ else None
    allowed = listed if only is None else _given("only", only)
    if autoload is None:
        autoload = not _flag(environ, NO_AUTOLOAD)
    return PluginSettings(
        only=() if allowed is None and not autoload else allowed,
        block=_names(environ.get(BLOCK, "")) if block is None else _given("block", block),
        strict=_flag(environ, STRICT) if strict is None else strict,
        trace=_flag(environ, TRACE),
    )


def option_variable(identity: str, option: str) -> str:
    """The environment variable that sets an option of a distribution's plugins.

    Example:
        >>> option_variable("acme-tracker", "url")
        'ESTIMATOR_OPTION_ACME_TRACKER_URL'
    """
    return f"ESTIMATOR_OPTION_{normalise(identity)}_{option}".upper().replace("-", "_")


def normalise(name: str) -> str:
    """The form in which names are compared, as package installers do."""
    return re.sub(r"[-_.]+", "-", name).lower()


def matches(names: Iterable[str], identity: str) -> bool:
    """Whether a list names a distribution."""
    return normalise(identity) in map(normalise, names)


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _given(argument: str, names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise ArgumentError(f"{argument}={names!r} is one string; give a list of names: {argument}=[{names!r}]")
    return tuple(names)


def _flag(environ: Mapping[str, str], name: str) -> bool:
    value = environ.get(name, "").strip().lower()
    if value in ("", "0", "false", "no", "off"):
        return False
    if value in ("1", "true", "yes", "on"):
        return True
    raise ArgumentError(f"environment variable {name}={value!r}; use 1 or 0")
