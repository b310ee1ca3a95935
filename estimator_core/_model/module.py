"""`ec.module`: modules of neural-network libraries in the variable scope."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from estimator_core._model.adapter import Binding, ModuleAdapter, Trainable, trainable_rule
from estimator_core._model.factory import Factory, factory_of
from estimator_core._model.function_adapter import FunctionAdapter
from estimator_core._model.scope import active_scope
from estimator_core.errors import ArgumentTypeError, PluginError, VariableError

if TYPE_CHECKING:
    import numpy as np

    from estimator_core._plugins import Plugins

_log = logging.getLogger(__name__)

#: Gives the adapters to ask.
AdapterLookup = Callable[[], Iterator[ModuleAdapter]]

_FUNCTION = FunctionAdapter()


def module(
    factory_or_module: Any,
    name: str,
    *,
    trainable: Trainable = None,
    reuse: bool = False,
    adapters: AdapterLookup | None = None,
) -> Any:
    """Brings a module of a neural-network library into the variable scope.

    The module is then used as its library means it to be used. Its parameters are variables under `name`; what else it
    keeps (batch statistics, buffers) is model state; random keys change with the step; sown values become named
    tensors.

    Args:
        factory_or_module: a class or function that makes the module, with no arguments or those named `rngs` (an
            `nnx.Rngs`) or `key` (a
            key of `jax.random`); or a module made outside model_fn, whose values are the first values and which is
            never changed; or a plain function of the inputs that calls `ec.get_variable`.
        name: its name in the variable scope under way.
        trainable: which parameters are trained: all (default) or none, a regular expression of the whole name within
            the module, or a
            function of that name.
        reuse: gives the module that has this name already, if there is one.
        adapters: gives the adapters to ask; default: those of the installed plugins.

    Returns:
        Flax NNX and Equinox: the module. Equinox with state: an object with `module`, `state` and a call that threads
        the state. Flax Linen and Keras: a callable. A function: the function.

    Raises:
        ModelFnError: called outside model_fn.
        VariableError: the name is taken, or the module cannot be brought in; the message says what to do.
        ArgumentTypeError: no adapter knows such a module, or the factory takes other arguments.

    Example:
        >>> from flax import nnx  # its adapter comes with estimator-modules
        >>> def model_fn(features, labels, mode):
        ...     network = module(lambda rngs: nnx.Linear(4, 2, rngs=rngs), name="network")
        ...     logits = network(features)
    """
    scope = active_scope("ec.module")
    path = scope.path(name)
    if path in scope.modules:
        if reuse:
            return scope.modules[path]
        raise VariableError(
            f"There is a module named {path!r} in this model_fn already. Keep what ec.module returned and call "
            "that again, "
            "pass reuse=True to get it here, or use another name."
        )
    scope.require_outermost(f"ec.module(name={name!r})", "make the module outside and call it inside")
    rule = trainable_rule(trainable)
    lookup = adapters or _plugin_adapters
    factory = None
    made = factory_or_module
    adapter = _adapter_of(made, lookup)
    if adapter is None:
        # Callable modules would else pass for functions of inputs, and their values for constants.
        _refuse_without_package(made)
        factory = factory_of(factory_or_module)
        if factory is not None:
            made = factory.make_here()
            adapter = _adapter_of(made, lookup)
            if adapter is None:
                _refuse_without_package(made)
        elif _FUNCTION.handles(factory_or_module):
            adapter = _FUNCTION
    if adapter is None:
        raise _unknown(made, factory, lookup)
    scope.modules[path] = adapter.bind(
        Binding(
            scope=scope,
            path=path,
            module=made,
            make=factory.make if factory is not None else None,
            made_in_trace=factory is not None and factory.in_trace,
            trainable=rule,
        )
    )
    return scope.modules[path]


def write_back(
    instance: Any, values: Mapping[str, np.ndarray], *, name: str, adapters: AdapterLookup | None = None
) -> None:
    """Loads the values of a module into an instance outside of model_fn.

    Args:
        instance: a module of the structure that `ec.module(..., name=name)` was given; changed in place.
        values: variables and model state, by path; those not under `name` are ignored.
        name: the module's path.
        adapters: as in `module`.

    Raises:
        VariableError: there are no values under `name`, or names or shapes differ.
        ArgumentTypeError: no adapter knows such a module, or its library keeps no values in instances.
    """
    lookup = adapters or _plugin_adapters
    adapter = _adapter_of(instance, lookup)
    if adapter is None:
        raise _unknown(instance, None, lookup)
    of_module = {path.removeprefix(f"{name}/"): value for path, value in values.items() if path.startswith(f"{name}/")}
    if not of_module:
        known = ", ".join(sorted({path.split("/")[0] for path in values})) or "none"
        raise VariableError(f"There are no variables under {name!r}; the first parts of their paths are: {known}.")
    adapter.write_back(instance, of_module)


def _adapter_of(thing: Any, lookup: AdapterLookup) -> ModuleAdapter | None:
    for adapter in lookup():
        if adapter.library in sys.modules and adapter.handles(thing):
            return adapter
    return None


def _plugin_adapters() -> Iterator[ModuleAdapter]:
    from estimator_core._plugins import plugins_in_use

    plugins = plugins_in_use()
    for name in plugins.names("adapter"):
        if plugins.find("adapter", name).component.target.startswith("estimator_core."):
            continue
        try:
            yield plugins.get("adapter", name)()
        except PluginError as error:
            # Other libraries' modules still work; one of this library is refused as unknown, after this line.
            _log.warning("The module adapter %r is left out: %s", name, error)


def _refuse_without_package(thing: Any) -> None:
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


def _unknown(made: Any, factory: Factory | None, lookup: AdapterLookup) -> ArgumentTypeError:
    from estimator_core._plugins import plugins_in_use
    from estimator_core._plugins.known import known_distribution

    what = f"made by the factory {factory.description}" if factory is not None else "given"
    names = ", ".join(adapter.name for adapter in lookup()) or "none"
    absent = _absent_adapters(plugins_in_use())
    packages = " ".join(sorted({str(known_distribution("adapter", name)) for name in absent}))
    more = f" Adapters that are not installed: {', '.join(absent)} (pip install {packages})." if absent else ""
    return ArgumentTypeError(
        f"ec.module knows no module of type {_type_name(made)} ({what}). There are adapters for: {names}.{more} Give a "
        "module of one of these, a factory of one, or a function that takes its inputs; or install a plugin with an "
        "adapter."
    )


def _absent_adapters(plugins: Plugins) -> list[str]:
    from estimator_core._plugins.known import known_names

    return [name for name in known_names("adapter") if name not in plugins.names("adapter")]


def _type_name(thing: Any) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _types_of(made: Any) -> Iterator[type]:
    """The classes a module is made of; some libraries give a module together with its state, as a tuple."""
    for one in made if isinstance(made, tuple) else (made,):
        yield from type(one).__mro__
