"""The names of `estimator_core.learn_runner`, typed; estimator-experiment brings them."""

from estimator_experiment.learn_runner import run as run
from estimator_experiment.learn_runner import schedule_of as schedule_of
from estimator_experiment.learn_runner import tune as tune
