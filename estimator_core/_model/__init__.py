"""Variables, the modules that use them, and everything a `model_fn` says while it is traced."""

from estimator_core._model.access import get_variable as get_variable
from estimator_core._model.access import next_rng_key as next_rng_key
from estimator_core._model.access import set_variable as set_variable
from estimator_core._model.access import trainable_variables as trainable_variables
from estimator_core._model.access import variable_scope as variable_scope
from estimator_core._model.adapter import Binding as Binding
from estimator_core._model.adapter import ModuleAdapter as ModuleAdapter
from estimator_core._model.init_from_checkpoint import (
    get_assignment_map_from_checkpoint as get_assignment_map_from_checkpoint,
)
from estimator_core._model.init_from_checkpoint import init_from_checkpoint as init_from_checkpoint
from estimator_core._model.module import module as module
from estimator_core._model.tensors import tensor as tensor
from estimator_core._model.variables import VariableSpec as VariableSpec
from estimator_core._model.vocabulary import VocabInfo as VocabInfo
from estimator_core._model.warm_start import WarmStartSettings as WarmStartSettings
