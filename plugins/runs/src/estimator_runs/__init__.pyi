"""The public names, typed; `__init__.py` imports each when it is first used."""

from estimator_runs.capsule.differences import Difference as Difference
from estimator_runs.capsule.differences import capsule_differences as capsule_differences
from estimator_runs.capsule.reproducing import Reproduced as Reproduced
from estimator_runs.capsule.reproducing import reproduce as reproduce
from estimator_runs.capsule.shelf import Start as Start
from estimator_runs.capsule.shelf import read_starts as read_starts
from estimator_runs.configuration.layers import Layer as Layer
from estimator_runs.configuration.layers import Origin as Origin
from estimator_runs.configuration.layers import Resolved as Resolved
from estimator_runs.configuration.layers import resolve as resolve
from estimator_runs.configuration.problems import ConfigurationError as ConfigurationError
from estimator_runs.configuration.problems import Problem as Problem
from estimator_runs.configuration.reading import read_configuration as read_configuration
from estimator_runs.configuration.reading import read_program as read_program
from estimator_runs.folds.driving import Folds as Folds
from estimator_runs.folds.driving import open_folds as open_folds
from estimator_runs.folds.driving import run_folds as run_folds
from estimator_runs.folds.results import MetricOverFolds as MetricOverFolds
from estimator_runs.folds.results import metrics_over_folds as metrics_over_folds
from estimator_runs.folds.results import out_of_fold as out_of_fold
from estimator_runs.folds.rows import Rows as Rows
from estimator_runs.folds.rows import read_rows as read_rows
from estimator_runs.population.driving import Trials as Trials
from estimator_runs.population.driving import open_population as open_population
from estimator_runs.population.driving import run_population as run_population
from estimator_runs.population.member import Member as Member
from estimator_runs.population.training import Population as Population
from estimator_runs.records.comparing import Paired as Paired
from estimator_runs.records.comparing import by_configuration as by_configuration
from estimator_runs.records.comparing import differences as differences
from estimator_runs.records.comparing import paired_bootstrap as paired_bootstrap
from estimator_runs.records.page import write_page as write_page
from estimator_runs.records.reading import RunRecord as RunRecord
from estimator_runs.records.reading import read_run as read_run
from estimator_runs.records.reading import read_runs as read_runs
from estimator_runs.records.reading import tag_run as tag_run
from estimator_runs.sweep.driving import Search as Search
from estimator_runs.sweep.driving import open_search as open_search
from estimator_runs.sweep.driving import run_search as run_search
from estimator_runs.sweep.results import best_trials as best_trials
from estimator_runs.sweep.results import importances as importances
from estimator_runs.sweep.results import write_winner as write_winner

__version__: str
