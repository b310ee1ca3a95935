"""Variables, the modules that use them, and everything a `model_fn` says while it is traced."""

from estimator_core._model.access import get_variable as get_variable
from estimator_core._model.access import next_rng_key as next_rng_key
from estimator_core._model.access import set_variable as set_variable
from estimator_core._model.access import trainable_variables as trainable_variables
from estimator_core._model.access import variable_scope as variable_scope
from estimator_core._model.adapter import Binding as Binding
from estimator_core._model.adapter import ModuleAdapter as ModuleAdapter
from estimator_core._model.check_value import check_value as check_value
from estimator_core._model.initial_requests import Declared as Declared
from estimator_core._model.initial_requests import declared_variables as declared_variables
from estimator_core._model.initial_requests import request_initial_values as request_initial_values
from estimator_core._model.initial_values import InitialValue as InitialValue
from estimator_core._model.initial_values import InitialValues as InitialValues
from estimator_core._model.module import module as module
from estimator_core._model.tensors import tensor as tensor
from estimator_core._model.variables import VariableSpec as VariableSpec
