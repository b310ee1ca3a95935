"""model_fn turned into compiled functions: discovery, and the train, evaluation and predict steps."""

from estimator_core._step.discovery import Discovery as Discovery
from estimator_core._step.discovery import discover as discover
from estimator_core._step.model_fn import BoundModelFn as BoundModelFn
from estimator_core._step.model_fn import bind_model_fn as bind_model_fn
from estimator_core._step.state import TrainState as TrainState
from estimator_core._step.state import initial_clock as initial_clock
from estimator_core._step.train_step import TrainStep as TrainStep
