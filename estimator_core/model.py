"""Variables, the modules that use them, and everything a `model_fn` says while it is traced."""

from estimator_core._model import (
    Binding,
    ModuleAdapter,
    VariableSpec,
    VocabInfo,
    WarmStartSettings,
    get_assignment_map_from_checkpoint,
    get_variable,
    init_from_checkpoint,
    module,
    next_rng_key,
    set_variable,
    tensor,
    trainable_variables,
    variable_scope,
)
from estimator_core._model.fitting import check_names
from estimator_core._model.inner_trace import is_traced
from estimator_core._model.module_values import ModuleValues
from estimator_core._model.scope import in_model_fn

__all__ = [
    "Binding",
    "ModuleAdapter",
    "ModuleValues",
    "VariableSpec",
    "VocabInfo",
    "WarmStartSettings",
    "check_names",
    "get_assignment_map_from_checkpoint",
    "get_variable",
    "in_model_fn",
    "init_from_checkpoint",
    "is_traced",
    "module",
    "next_rng_key",
    "set_variable",
    "tensor",
    "trainable_variables",
    "variable_scope",
]
