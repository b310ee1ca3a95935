"""The user's model_fn, which is checked once and called in the same way in every mode."""

from __future__ import annotations

import contextlib
import copy
import inspect
import logging
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from estimator_core._model.variables import computing_in, reduced, restored
from estimator_core._plugins import Plugins, using_plugins
from estimator_core._step.precision import COMPUTE_DTYPES
from estimator_core._types import Params, PyTree
from estimator_core.errors import ArgumentError, ArgumentTypeError, ModelFnError
from estimator_core.modes import ModeKeys
from estimator_core.specs import EstimatorSpec

_ALLOWED = ("features", "labels", "mode", "params", "config")
_log = logging.getLogger("estimator_core")


@dataclass(frozen=True, kw_only=True)
class BoundModelFn:
    """A model_fn with its params and config; `spec(features, labels, mode)` calls it.

    Attributes:
        function: the user's function.
        arguments: the argument names that it accepts, a subset of features, labels, mode, params, config.
        plugins: the plugins whose module adapters it may use. None: the installed ones.
    """

    function: Callable[..., Any]
    arguments: frozenset[str]
    params: Params
    config: Any
    plugins: Plugins | None = None

    @property
    def precision(self) -> str:
        """The precision policy of the config."""
        return getattr(self.config, "precision", "float32")

    @property
    def writes_summaries(self) -> bool:
        """Whether the config writes histograms, images and texts of training. Scalars are outputs anyway."""
        return bool(getattr(self.config, "save_summary_steps", None))

    def spec(self, features: PyTree, labels: PyTree, mode: str) -> EstimatorSpec:
        """Calls model_fn, with a copy of params, because a model_fn may change them.

        Raises:
            ModelFnError: there are labels that model_fn does not accept, or it does not return an EstimatorSpec of this
                mode.
        """
        if labels is not None and "labels" not in self.arguments:
            raise ModelFnError(
                "model_fn does not take labels, but input_fn returns labels. Add a `labels` argument to "
                f"{_name(self.function)} or return features only."
            )
        values = {"labels": labels, "mode": mode, "params": copy.deepcopy(self.params), "config": self.config}
        dtype = COMPUTE_DTYPES[self.precision]
        told = _saying_what_is_given(features, self.params, mode, labels is None and "labels" in self.arguments)
        with using_plugins(self.plugins), computing_in(dtype), told:
            result = self.function(
                features=reduced(features, dtype),
                **{name: value for name, value in values.items() if name in self.arguments},
            )
        if not isinstance(result, EstimatorSpec):
            raise ModelFnError(
                f"model_fn should return an EstimatorSpec. {_name(self.function)} returned {type(result).__name__} in "
                f"mode {mode!r}."
            )
        if result.mode != mode:
            raise ModelFnError(
                f"model_fn was called in mode {mode!r} but returned an EstimatorSpec of mode {result.mode!r}. Pass on "
                "the `mode` argument."
            )
        if dtype is None:
            return result
        return replace(result, loss=restored(result.loss, dtype), predictions=restored(result.predictions, dtype))


@contextlib.contextmanager
def _saying_what_is_given(features: PyTree, params: Params, mode: str, lacks_labels: bool) -> Generator[None]:
    """Adds a note to errors if something is missing: an array, for example of Python objects, or a hyperparameter."""
    cure = "Arrays of text, dates or objects stay on the host: convert numbers with astype, words with np.unique."
    try:
        yield
    except KeyError as error:
        if isinstance(features, Mapping) and error.args and error.args[0] not in features:
            names: list[str] = sorted(map(str, features))
            error.add_note(f"If {error.args[0]!r} is a feature: model_fn gets the features {names}. {cure}")
            if isinstance(params, Mapping) and error.args[0] not in params:
                error.add_note(f"If {error.args[0]!r} is a hyperparameter: params has {sorted(map(str, params))}.")
        raise
    except (AttributeError, TypeError, ValueError) as error:
        # A library may have made an array of None before it raises, and then names only its dtype or type.
        if lacks_labels and any(word in str(error) for word in ("None", "dtype", "numpy.ndarray")):
            early = "If the error comes from them: return the predictions of this mode before the labels are used."
            always = f"In mode {mode!r} (ModeKeys.PREDICT) the labels are always None. {early}"
            known = f"The labels that model_fn gets are None. {cure}"
            error.add_note(always if mode == ModeKeys.PREDICT else known)
        raise


def bind_model_fn(model_fn: object, params: Params, config: object, plugins: Plugins | None = None) -> BoundModelFn:
    """Checks the signature of a model_fn and binds params and config to it.

    Raises:
        ArgumentError, ArgumentTypeError: model_fn is missing, lacks `features` or has unknown arguments, or params are
            passed although it does not accept them.

    Example:
        >>> sorted(bind_model_fn(lambda features, mode: None, None, None).arguments)
        ['features', 'mode']
    """
    if model_fn is None:
        raise ArgumentError("model_fn must be provided to Estimator.")
    if not callable(model_fn):
        raise ArgumentTypeError(f"model_fn must be a function (features, labels, mode, params), given: {model_fn!r}.")
    arguments = frozenset(_argument_names(model_fn))
    if "features" not in arguments:
        raise ArgumentError(f"model_fn ({_name(model_fn)}) must include features argument.")
    unknown = sorted(arguments - set(_ALLOWED))
    if unknown:
        raise ArgumentError(
            f"model_fn ({_name(model_fn)}) has following not expected args: {unknown}. Allowed: {list(_ALLOWED)}; bind "
            "others with functools.partial."
        )
    if params is not None and "params" not in arguments:
        raise ArgumentError(
            f"model_fn ({_name(model_fn)}) does not include params argument, but params ({params!r}) is passed to "
            "Estimator."
        )
    if params is None and "params" in arguments:
        _log.warning(
            "Estimator's model_fn (%s) includes params argument, but params are not passed to Estimator.",
            _name(model_fn),
        )
    return BoundModelFn(function=model_fn, arguments=arguments, params=params, config=config, plugins=plugins)


def _argument_names(function: Callable[..., Any]) -> list[str]:
    bound: Mapping[str, Any] = getattr(function, "keywords", None) or {}  # those of functools.partial
    names: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise ArgumentError(f"model_fn ({_name(function)}) must name its arguments; {parameter} hides them.")
        own = parameter.default is not parameter.empty and parameter.name not in _ALLOWED
        if not own and parameter.name not in bound:
            names.append(parameter.name)
    return names


def _name(function: object) -> str:
    return getattr(function, "__qualname__", None) or repr(function)
