"""Variables, the modules that use them, and everything a `model_fn` says while it is traced."""

from estimator_core.model.access import get_variable as get_variable
from estimator_core.model.access import next_rng_key as next_rng_key
from estimator_core.model.access import set_variable as set_variable
from estimator_core.model.access import trainable_variables as trainable_variables
from estimator_core.model.access import variable_scope as variable_scope
from estimator_core.model.adapter import Binding as Binding
from estimator_core.model.adapter import ModuleAdapter as ModuleAdapter
from estimator_core.model.init_from_checkpoint import (
    get_assignment_map_from_checkpoint as get_assignment_map_from_checkpoint,
)
from estimator_core.model.init_from_checkpoint import init_from_checkpoint as init_from_checkpoint
from estimator_core.model.module import module as module
from estimator_core.model.tensors import tensor as tensor
from estimator_core.model.variables import VariableSpec as VariableSpec
from estimator_core.model.vocabulary import VocabInfo as VocabInfo
from estimator_core.model.warm_start import WarmStartSettings as WarmStartSettings
