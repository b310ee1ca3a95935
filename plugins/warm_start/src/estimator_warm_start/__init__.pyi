"""The public names, typed; `__init__.py` imports each when it is first used."""

from estimator_warm_start.assignments import AssignmentMap as AssignmentMap
from estimator_warm_start.checkpoint_values import CheckpointReader as CheckpointReader
from estimator_warm_start.in_model_fn import (
    get_assignment_map_from_checkpoint as get_assignment_map_from_checkpoint,
)
from estimator_warm_start.in_model_fn import init_from_checkpoint as init_from_checkpoint
from estimator_warm_start.load_report import LoadedVariable as LoadedVariable
from estimator_warm_start.load_report import LoadReport as LoadReport
from estimator_warm_start.settings import WarmStartSettings as WarmStartSettings
from estimator_warm_start.tensorflow import TensorFlowCheckpoint as TensorFlowCheckpoint
from estimator_warm_start.tensorflow import read_tensorflow as read_tensorflow
from estimator_warm_start.tensorflow import tensorflow_prefix as tensorflow_prefix
from estimator_warm_start.vocabulary import VocabInfo as VocabInfo

__version__: str
