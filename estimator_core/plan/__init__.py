"""What a training step takes on devices that are not there: memory, operations, collectives, time."""

from estimator_core.plan.collectives import Collective as Collective
from estimator_core.plan.flops import FlopCount as FlopCount
from estimator_core.plan.flops import count_flops as count_flops
from estimator_core.plan.memory import Memory as Memory
from estimator_core.plan.report import report as report
from estimator_core.plan.roofline import Roofline as Roofline
from estimator_core.plan.topologies import Found as Found
from estimator_core.plan.topologies import find_topology as find_topology
from estimator_core.plan.topologies import parse_mesh as parse_mesh
from estimator_core.plan.topologies import parse_topology as parse_topology
from estimator_core.plan.training_plan import TrainingPlan as TrainingPlan
from estimator_core.plan.training_plan import plan_training as plan_training
