"""The public names, typed; `__init__.py` imports each when it is first used."""

from estimator_explain.explanations import Explanations as Explanations
from estimator_explain.explanations import read_explanations as read_explanations
from estimator_explain.explanations import write_explanations as write_explanations
from estimator_explain.gradients import Attributions as Attributions
from estimator_explain.gradients import integrated_gradients as integrated_gradients
from estimator_explain.importance import Importance as Importance
from estimator_explain.importance import permutation_importance as permutation_importance

__version__: str
