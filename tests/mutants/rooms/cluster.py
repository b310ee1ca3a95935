"""Who trains together, as the environment tells."""

from tests.mutants.record import Mutant

_ROOM = "estimator_core/_cluster/"

MUTANTS = (
    Mutant(
        name="an-evaluator-trains",
        guarantee="rule 21",
        file=_ROOM + "detect.py",
        old="if cluster.task_type in (TaskType.EVALUATOR, TaskType.PS):",
        new="if cluster.task_type == TaskType.PS:",
        tests=("test_an_evaluator_beside_processes_that_train_is_alone",),
    ),
    Mutant(
        name="world-size-alone-means-processes",
        guarantee="rule 21",
        file=_ROOM + "detect.py",
        old='if count_name == "WORLD_SIZE" and "MASTER_ADDR" not in environ:',
        new="if False:",
        tests=("test_alone",),
    ),
    Mutant(
        name="a-batch-script-is-a-step",
        guarantee="rule 21",
        file=_ROOM + "detect.py",
        old='_number(environ, "SLURM_STEP_NUM_TASKS"), _number',
        new='_number(environ, "SLURM_NTASKS"), _number',
        tests=("test_found",),
    ),
    Mutant(
        name="jobs-of-a-set-share-their-indices",
        guarantee="rule 21",
        file=_ROOM + "detect.py",
        old="job * size + within",
        new="within",
        tests=("test_found",),
    ),
    Mutant(
        name="roles-are-counted-by-name-alone",
        guarantee="rule 21",
        file=_ROOM + "info.py",
        old="sorted(cluster, key=lambda role: (role != chief_type, role == TaskType.PS, role))",
        new="sorted(cluster)",
        tests=("test_other_roles_are_ordered_by_name_with_ps_last",),
    ),
    Mutant(
        name="a-worker-is-chief",
        guarantee="rule 21",
        file=_ROOM + "info.py",
        old="is_chief=task_type == chief_type,",
        new="is_chief=True,",
        tests=("test_roles",),
    ),
    Mutant(
        name="an-index-may-lie-outside",
        guarantee="rule 21",
        file=_ROOM + "processes.py",
        old="if self.count < 1 or not 0 <= self.index < self.count:",
        new="if self.count < 1:",
        tests=("test_refused",),
    ),
    Mutant(
        name="sparse-addresses-are-in-the-order-given",
        guarantee="rule 21",
        file=_ROOM + "info.py",
        old="for index in sorted(sparse, key=int)",
        new="for index in sparse",
        tests=("test_sparse_addresses",),
    ),
)
