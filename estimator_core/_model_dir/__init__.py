"""The model_dir of an Estimator: a directory of this machine, or a working copy of one in an object store."""

from estimator_core._model_dir.contract import ModelDir
from estimator_core._model_dir.opening import agreed_model_dir, model_dir_at

__all__ = ["ModelDir", "agreed_model_dir", "model_dir_at"]
