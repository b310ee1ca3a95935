"""Who trains together, as the environment tells."""

from tests.mutants.record import Mutant

_ROOM = "estimator_core/_cluster/"

MUTANTS = (
    Mutant(
        name="an-evaluator-trains",
        guarantee="rule 21",
        file=_ROOM + "detect.py",
        old="if cluster.task_type in (TaskType.EVALUATOR, TaskType.PS) or",
        new="if cluster.task_type == TaskType.PS or",
        tests=("test_an_evaluator_beside_processes_that_train_is_alone",),
    ),
    Mutant(
        name="world-size-alone-means-processes",
        guarantee="rule 21",
        file=_ROOM + "environments.py",
        old='if count is None or index is None or not environ.get("MASTER_ADDR"):',
        new="if count is None or index is None:",
        tests=("test_alone",),
    ),
    Mutant(
        name="an-allocation-counts-as-the-step",
        guarantee="rule 21",
        file=_ROOM + "environments.py",
        old='number(environ, "SLURM_STEP_NUM_TASKS"), number',
        new='number(environ, "SLURM_NTASKS"), number',
        tests=("test_found", "test_alone"),
    ),
    Mutant(
        name="the-first-environment-wins",
        guarantee="rule 21",
        file=_ROOM + "detect.py",
        old="    _refuse_conflict(found)\n",
        new="",
        tests=("test_environments_that_disagree_are_refused",),
    ),
    Mutant(
        name="a-pod-without-a-count-is-alone",
        guarantee="rule 21",
        file=_ROOM + "detect.py",
        old='if environ.get("JOB_COMPLETION_INDEX") and not',
        new='if environ.get("NO_SUCH_INDEX") and not',
        tests=("test_refused",),
    ),
    Mutant(
        name="one-task-of-a-node-takes-one-card",
        guarantee="rule 21",
        file=_ROOM + "environments.py",
        old="if count == 1 or bound:",
        new="if bound:",
        tests=("test_cards",),
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
