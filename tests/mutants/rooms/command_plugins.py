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
    Mutant(
        name="a-compiled-program-of-the-same-second-is-taken",
        guarantee="rule 233",
        file="plugins/experiment/src/estimator_experiment/program.py",
        old="    exec(code, vars(module))",
        new="    spec.loader.exec_module(module)",
        tests=("test_an_edit_of_the_same_second_and_size_is_seen",),
        in_cut=False,
    ),
    Mutant(
        name="every-broken-pipe-is-that-of-the-output",
        guarantee="rule 234",
        file="estimator_core/_cli/main.py",
        old="        if not any(map(_has_lost_its_reader, (sys.stdout, sys.stderr))):\n            raise\n",
        new="        pass\n",
        tests=("test_a_broken_pipe_of_the_work_itself_is_told",),
        in_cut=False,
    ),
    Mutant(
        name="a-note-without-a-time",
        guarantee="rule 236",
        file="plugins/launchers/src/estimator_launchers/slurm.sh.tmpl",
        old="until now=$$(date +%s%N); do :; done",
        new="now=$$(date +%s%N)",
        tests=("test_a_signal_while_the_end_is_noted_leaves_the_note_whole",),
        in_cut=False,
    ),
    Mutant(
        name="a-training-is-continued-with-other-texts-of-no-value",
        guarantee="rule 247",
        file="plugins/canned_tabular/src/estimator_canned_tabular/cli/trained.py",
        old="if held is not None and set(held) != set(form.na_values):",
        new="if False:",
        tests=("test_a_training_is_continued_with_the_texts_that_it_began_with",),
        in_cut=False,
    ),
    Mutant(
        name="the-end-is-left-to-the-watch",
        guarantee="rule 248",
        file="plugins/launchers/src/estimator_launchers/kubernetes.py",
        old="for line in told.new(_listed(job_id)))",
        new="for line in told.new([]))",
        tests=("test_the_end_is_told_though_the_watch_of_the_pods_begins_again_just_then",),
        in_cut=False,
    ),
)
