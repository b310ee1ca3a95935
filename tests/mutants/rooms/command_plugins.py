"""Commands of packages: which program and which model they take."""

from tests.mutants.record import Mutant

MUTANTS = (
    Mutant(
        name="the-program-of-the-current-directory",
        guarantee="rule 223",
        file="plugins/experiment/src/estimator_experiment/opening.py",
        old="path = started / name",
        new="path = Path.cwd() / name",
        tests=("test_the_program_of_a_run_is_that_of_the_directory_in_which_it_was_started",),
        in_cut=False,
    ),
    Mutant(
        name="a-part-of-a-model-is-a-model",
        guarantee="rule 224",
        file="plugins/canned_tabular/src/estimator_canned_tabular/cli/trained.py",
        old="if said.get(name) != wanted:",
        new="if False:",
        tests=("test_a_model_dir_of_another_model_is_refused",),
        in_cut=False,
    ),
)
