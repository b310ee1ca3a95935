"""Variables, the modules that use them, and everything a `model_fn` says while it is traced."""

from estimator_core.model.adapter import Binding as Binding
from estimator_core.model.adapter import ModuleAdapter as ModuleAdapter
