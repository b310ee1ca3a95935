"""`ec.module`: connects modules of neural-network libraries, and plain functions, to the variable scope."""

from __future__ import annotations

import functools
import inspect
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from estimator_core._model.adapter import Binding, ModuleAdapter, Trainable, trainable_rule
from estimator_core._model.factory import factory_of
from estimator_core._model.scope import active_scope
from estimator_core._plugins.discovery import describe, noting_origin
from estimator_core.errors import ArgumentTypeError, PluginError, VariableError

if TYPE_CHECKING:
    import numpy as np

    from estimator_core._model.factory import Factory
    from estimator_core._plugins import Plugins

_log = logging.getLogger(__name__)


class FunctionAdapter:
    """Runs a function in the variable scope of its name. Further calls use the same variables."""

    name = "function"
    library = "builtins"

    def handles(self, module: object) -> bool:
        """Returns whether the module is a function, not a class."""
        return callable(module) and not inspect.isclass(module)

    def bind(self, binding: Binding) -> Any:
        """Returns the function, running in its scope."""
        function, scope, path = binding.module, binding.scope, binding.path

        @functools.wraps(function)
        def in_scope(*args: object, **kwargs: object) -> Any:
            with scope.at(path):
                return function(*args, **kwargs)

        return in_scope

    def write_back(self, module: object, values: Mapping[str, object]) -> None:
        """Refuses the call, because a function has no values.

        Raises:
            ArgumentTypeError: always.
        """
        raise ArgumentTypeError(
            "A function has no values to load into. Read them with estimator.get_variable_value(name)."
        )


def refuse_without_package(thing: object) -> None:
    """Refuses a module of a library whose adapter is in a known package that is not in use.

    Raises:
        ArgumentTypeError: the adapter is missing. The message names the package.
    """
    from estimator_core._plugins import plugins_in_use

    plugins = plugins_in_use()
    # The name of an adapter is a part of the path of its library: `nnx` for flax.nnx, `keras` for keras.src.models.
    parts = {part for type_ in _types_of(thing) for part in type_.__module__.split(".")}
    for name in _absent_adapters(plugins):
        if name in parts:
            raise ArgumentTypeError(
                f"ec.module cannot adapt a module of type {_type_name(thing)}: {plugins.explain('adapter', name)}"
            )


def unknown_module(made: object, factory: Factory | None, adapters: Sequence[str]) -> ArgumentTypeError:
    """Returns the error for an object that no adapter handles. `adapters` are the names of the queried adapters."""
    from estimator_core._plugins import plugins_in_use
    from estimator_core._plugins.not_found import known_distribution

    what = f"made by the factory {factory.description}" if factory is not None else "given"
    absent = _absent_adapters(plugins_in_use())
    packages = " ".join(sorted({str(known_distribution("adapter", name)) for name in absent}))
    names = ", ".join(adapters) or "none"
    more = f" Adapters that are not installed: {', '.join(absent)} (pip install {packages})." if absent else ""
    return ArgumentTypeError(
        f"ec.module cannot adapt a module of type {_type_name(made)} ({what}). Installed adapters: {names}.{more} Give "
        "a module of one of these, a factory of one, or a function that takes its inputs; or install a plugin with an "
        "adapter."
    )


def _absent_adapters(plugins: Plugins) -> list[str]:
    from estimator_core._plugins.not_found import known_names

    return [name for name in known_names("adapter") if name not in plugins.names("adapter")]


def _type_name(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


def _types_of(made: object) -> Iterator[type]:
    """Yields the classes of a module. Some libraries return a module and its state as a tuple."""
    for one in made if isinstance(made, tuple) else (made,):
        yield from type(one).__mro__


#: Returns the adapters to query.
AdapterLookup = Callable[[], Iterator[ModuleAdapter]]

_FUNCTION = FunctionAdapter()


def module(
    factory_or_module: object,
    name: str,
    *,
    trainable: Trainable = None,
    reuse: bool = False,
    adapters: AdapterLookup | None = None,
) -> Any:
    """Connects a module of a neural-network library to the variable scope.

    Use the module as its library defines. Its parameters are variables under `name`. Its other arrays (batch
    statistics, buffers) are model state. Random keys change with the step. Sown values become named tensors.

    Args:
        factory_or_module: a class or function that makes the module, without arguments or with `rngs` (an `nnx.Rngs`)
            or `key` (a key of `jax.random`). Or a module made outside model_fn, which supplies the initial values and
            never changes. Or a plain function of the inputs that calls `ec.get_variable`.
        name: the name in the current variable scope.
        trainable: the parameters to train: all (default) or none, a regular expression that matches the whole name
            within the module, or a function of that name.
        reuse: whether to return an existing module with this name.
        adapters: a function that returns the adapters to query. Default: the adapters of the installed plugins.

    Returns:
        Flax NNX and Equinox: the module. Equinox with state: an object with `module`, `state` and a call that threads
        the state. Flax Linen and Keras: a callable. A function: the function.

    Raises:
        ModelFnError: called outside model_fn.
        VariableError: the name is taken, or the module cannot be used. The message contains the remedy.
        ArgumentTypeError: no adapter handles the module, or the factory requires other arguments.

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
            f"This model_fn already has a module named {path!r}. Keep the object that ec.module returned and call it "
            "again, pass reuse=True to get it here, or use another name."
        )
    scope.require_outermost(f"ec.module(name={name!r})", "make the module outside and call it inside")
    rule = trainable_rule(trainable)
    made, factory, adapter = _made(factory_or_module, adapters or _plugin_adapters)
    binding = Binding(
        scope=scope,
        path=path,
        module=made,
        make=factory.make if factory is not None else None,
        made_in_trace=factory is not None and factory.in_trace,
        trainable=rule,
    )
    with noting_origin(lambda: f"in bind() of {describe(adapter, 'module adapter')}, for the module {path!r}"):
        scope.modules[path] = adapter.bind(binding)
    return scope.modules[path]


def _made(thing: object, lookup: AdapterLookup) -> tuple[Any, Factory | None, ModuleAdapter]:
    """Returns the module that the argument of `ec.module` is or makes, the factory that made it, and its adapter."""
    adapter = _adapter_of(thing, lookup)
    if adapter is not None:
        return thing, None, adapter
    # Otherwise callable modules would be treated as functions of inputs, and their values as constants.
    refuse_without_package(thing)
    factory = factory_of(thing)
    if factory is None and _FUNCTION.handles(thing):
        return thing, None, _FUNCTION
    made = thing
    if factory is not None:
        made = factory.make_here()
        adapter = _adapter_of(made, lookup)
        if adapter is not None:
            return made, factory, adapter
        refuse_without_package(made)
    raise unknown_module(made, factory, [adapter.name for adapter in lookup()])


def write_back(
    instance: object, values: Mapping[str, np.ndarray], *, name: str, adapters: AdapterLookup | None = None
) -> None:
    """Loads the values of a module into an instance outside of model_fn.

    Args:
        instance: a module with the structure of the one passed to `ec.module(..., name=name)`. It is changed in place.
        values: variables and model state, by path; those not under `name` are ignored.
        name: the path of the module.
        adapters: see `module`.

    Raises:
        VariableError: there are no values under `name`, or names or shapes differ.
        ArgumentTypeError: no adapter handles the module, or its library does not store values in instances.
    """
    lookup = adapters or _plugin_adapters
    adapter = _adapter_of(instance, lookup)
    if adapter is None:
        refuse_without_package(instance)
        raise unknown_module(instance, None, [adapter.name for adapter in lookup()])
    of_module = {path.removeprefix(f"{name}/"): value for path, value in values.items() if path.startswith(f"{name}/")}
    if not of_module:
        known = ", ".join(sorted({path.split("/")[0] for path in values})) or "none"
        raise VariableError(f"There are no variables under {name!r}; the first parts of their paths are: {known}.")
    with noting_origin(lambda: f"in write_back() of {describe(adapter, 'module adapter')}, for the module {name!r}"):
        adapter.write_back(instance, of_module)


def _adapter_of(thing: object, lookup: AdapterLookup) -> ModuleAdapter | None:
    """Returns the adapter that handles a module.

    If a plugin handles a plain function instead of the core, this is logged.

    Raises:
        VariableError: several plugins handle the module, and nothing decides between them.
    """
    plain = inspect.isroutine(thing) or isinstance(thing, functools.partial)
    asked = _first_ones() if plain and lookup is _plugin_adapters else lookup()
    found = {type(one): one for one in asked if one.library in sys.modules and _handles(one, thing)}
    if len(found) > 1 and lookup is _plugin_adapters:
        first = {type(one): one for one in _first_ones() if type(one) in found}
        if len(first) != 1:
            names = ", ".join(repr(one.name) for one in (first or found).values())
            raise VariableError(
                f"The adapters {names} all handle the module {type(thing).__qualname__}. Block the plugins of all but "
                "one, or let the policy override an adapter."
            )
        (taken,), others = first.values(), [one.name for kind, one in found.items() if kind not in first]
        _log.info("ec.module: the adapter %r handles %s instead of %s", taken.name, type(thing).__qualname__, others)
        return taken
    for adapter in found.values():
        if plain:
            _log.info("ec.module: the adapter %r, not the core's, handles the function %r", adapter.name, thing)
        return adapter
    return None


def _handles(adapter: ModuleAdapter, thing: Any) -> bool:
    try:
        return adapter.handles(thing)
    except Exception as error:
        raise VariableError(
            f"The module adapter {adapter.name!r} ({type(adapter).__module__}) failed in handles() for the module "
            f"{type(thing).__qualname__}: {type(error).__name__}: {error}. Upgrade its package, or block it."
        ) from error


def _first_ones() -> Iterator[ModuleAdapter]:
    """Yields the adapters of plugins that declare "priority", and those that the policy overrides."""
    from estimator_core._plugins import plugins_in_use

    plugins = plugins_in_use()
    first = dict.fromkeys(plugins.get("adapter", name) for name in plugins.automatic("adapter"))
    yield from (make() for make in first if make is not FunctionAdapter)


def _plugin_adapters() -> Iterator[ModuleAdapter]:
    from estimator_core._plugins import plugins_in_use

    plugins = plugins_in_use()
    for name in plugins.names("adapter"):
        if plugins.find("adapter", name).plugin.builtin:
            continue
        try:
            yield plugins.make("adapter", name)
        except PluginError as error:
            # Modules of other libraries still work. A module of this library is refused as unknown, after this log
            # line.
            _log.warning("The module adapter %r is left out: %s", name, error)
