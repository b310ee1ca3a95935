"""Errors of modules that no adapter knows: which package has one, where that is known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from estimator_core.errors import ArgumentTypeError

if TYPE_CHECKING:
    from estimator_core._model.factory import Factory
    from estimator_core._plugins import Plugins


def refuse_without_package(thing: object) -> None:
    """Refuses what belongs to a library whose adapter comes with a known package that is not in use.

    Raises:
        ArgumentTypeError: it names the package.
    """
    from estimator_core._plugins import plugins_in_use

    plugins = plugins_in_use()
    # An adapter is called like a part of the path of its library: `nnx` for flax.nnx, `keras` for keras.src.models.
    parts = {part for type_ in _types_of(thing) for part in type_.__module__.split(".")}
    for name in _absent_adapters(plugins):
        if name in parts:
            raise ArgumentTypeError(
                f"ec.module knows no module of type {_type_name(thing)}: {plugins.explain('adapter', name)}"
            )


def unknown_module(made: object, factory: Factory | None, adapters: Sequence[str]) -> ArgumentTypeError:
    """The error of something that no adapter knows; `adapters` are the names of those that were asked."""
    from estimator_core._plugins import plugins_in_use
    from estimator_core._plugins.explain import known_distribution

    what = f"made by the factory {factory.description}" if factory is not None else "given"
    absent = _absent_adapters(plugins_in_use())
    packages = " ".join(sorted({str(known_distribution("adapter", name)) for name in absent}))
    names = ", ".join(adapters) or "none"
    more = f" Adapters that are not installed: {', '.join(absent)} (pip install {packages})." if absent else ""
    return ArgumentTypeError(
        f"ec.module knows no module of type {_type_name(made)} ({what}). There are adapters for: {names}.{more} Give a "
        "module of one of these, a factory of one, or a function that takes its inputs; or install a plugin with an "
        "adapter."
    )


def _absent_adapters(plugins: Plugins) -> list[str]:
    from estimator_core._plugins.explain import known_names

    return [name for name in known_names("adapter") if name not in plugins.names("adapter")]


def _type_name(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _types_of(made: object) -> Iterator[type]:
    """The classes a module is made of; some libraries give a module together with its state, as a tuple."""
    for one in made if isinstance(made, tuple) else (made,):
        yield from type(one).__mro__
