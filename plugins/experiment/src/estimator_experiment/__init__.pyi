"""The public names, typed; `__init__.py` imports each when it is first used."""

from estimator_experiment import learn_runner as learn_runner
from estimator_experiment.experiment import Experiment as Experiment
from estimator_experiment.hparams import HParams as HParams
from estimator_experiment.opening import OpenedProgram as OpenedProgram
from estimator_experiment.opening import add_program_arguments as add_program_arguments
from estimator_experiment.opening import open_program as open_program
from estimator_experiment.program import Program as Program
from estimator_experiment.program import ProgramFormat as ProgramFormat
from estimator_experiment.program import load_module as load_module
from estimator_experiment.program import load_program as load_program

__version__: str
