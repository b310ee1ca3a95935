"""Variables, the modules that use them, and the outputs that a `model_fn` declares while it is traced."""

from estimator_core._jax_values import computed_by_host, is_in_host_memory, is_traced
from estimator_core._model.access import get_variable, next_rng_key, set_variable, trainable_variables, variable_scope
from estimator_core._model.adapter import Binding, ModuleAdapter
from estimator_core._model.compatibility import check_names, check_value
from estimator_core._model.initial_requests import declared_variables, request_initial_values
from estimator_core._model.initial_values import InitialValue, InitialValues, ReadsCheckpoints
from estimator_core._model.initialize import ModuleValues
from estimator_core._model.module import module
from estimator_core._model.scope import in_model_fn, nested_scope
from estimator_core._model.tensors import tensor
from estimator_core._model.variables import VariableSpec
from estimator_core._step.sparse import CarriedForm, RowAccess, WholeTable

__all__ = [
    "Binding",
    "CarriedForm",
    "InitialValue",
    "InitialValues",
    "ModuleAdapter",
    "ModuleValues",
    "ReadsCheckpoints",
    "RowAccess",
    "VariableSpec",
    "WholeTable",
    "check_names",
    "check_value",
    "computed_by_host",
    "declared_variables",
    "get_variable",
    "in_model_fn",
    "is_in_host_memory",
    "is_traced",
    "module",
    "nested_scope",
    "next_rng_key",
    "request_initial_values",
    "set_variable",
    "tensor",
    "trainable_variables",
    "variable_scope",
]
