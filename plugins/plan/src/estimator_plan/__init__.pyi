"""The public names, typed; `__init__.py` imports each when it is first used."""

from estimator_plan.collectives import Collective as Collective
from estimator_plan.contracts import BoundedByProcessors as BoundedByProcessors
from estimator_plan.contracts import CompilesWithFlags as CompilesWithFlags
from estimator_plan.flops import FlopCount as FlopCount
from estimator_plan.flops import count_flops as count_flops
from estimator_plan.kept_program import KeptProgram as KeptProgram
from estimator_plan.kept_program import keep_program as keep_program
from estimator_plan.kept_program import kept_programs as kept_programs
from estimator_plan.memory import Memory as Memory
from estimator_plan.pipeline import pipelined as pipelined
from estimator_plan.preset import Preset as Preset
from estimator_plan.preset import load_preset as load_preset
from estimator_plan.preset import presets as presets
from estimator_plan.preset import save_preset as save_preset
from estimator_plan.roofline import Roofline as Roofline
from estimator_plan.search import Candidate as Candidate
from estimator_plan.search import search_plans as search_plans
from estimator_plan.search import search_report as search_report
from estimator_plan.tables import report as report
from estimator_plan.topologies import Found as Found
from estimator_plan.topologies import Wanted as Wanted
from estimator_plan.topologies import find_topology as find_topology
from estimator_plan.topologies import parse_mesh as parse_mesh
from estimator_plan.topologies import parse_topology as parse_topology
from estimator_plan.training_plan import TrainingPlan as TrainingPlan
from estimator_plan.training_plan import plan_training as plan_training

__version__: str
