"""Runs that are run again, and commands that train."""

from tests.mutants.record import Mutant

_ROOM = "plugins/runs/src/estimator_runs/capsule/"
_POPULATION = "plugins/runs/src/estimator_runs/population/"

MUTANTS = (
    Mutant(
        name="the-format-of-the-export-is-looked-for-after-the-training",
        guarantee="rule 118",
        file="plugins/canned_tabular/src/estimator_canned_tabular/cli/job.py",
        old='        default_plugins().find("format", _FORMAT)  #',
        new="        #",
        tests=("test_an_export_that_cannot_be_made_is_refused_before_the_training",),
        in_cut=False,
    ),
    Mutant(
        name="weights-of-another-sign-are-equal",
        guarantee="rule 88",
        file=_ROOM + "weights.py",
        old="if first.tobytes() != second.tobytes():",
        new="if (first != second).any():",
        tests=("test_the_first_bit_that_differs_is_named",),
        in_cut=False,
    ),
    Mutant(
        name="packages-nobody-uses-differ",
        guarantee="rule 88",
        file=_ROOM + "differences.py",
        old="if not any(codes):",
        new="if False:",
        tests=("test_only_packages_in_use_differ",),
        in_cut=False,
    ),
    Mutant(
        name="a-changed-byte-has-no-place",
        guarantee="rule 88",
        file=_ROOM + "data.py",
        old="if old != new:",
        new="if False:",
        tests=("test_a_changed_byte_of_a_file_is_found_by_its_place",),
        in_cut=False,
    ),
    Mutant(
        name="a-diff-shows-secrets",
        guarantee="rule 88",
        file=_ROOM + "code.py",
        old='kept = "\\n".join(map(_masked, held.split("\\n")))',
        new="kept = held",
        tests=("test_the_commit_and_the_diff_without_secrets",),
        in_cut=False,
    ),
    Mutant(
        name="a-landed-run-forgets-its-input",
        guarantee="rule 109",
        file="estimator_core/_loop/device_state.py",
        old="self.step, self.position = step, position",
        new="self.step = step",
        tests=("test_killed_between_two_checkpoints_it_goes_on",),
        in_cut=False,
    ),
    Mutant(
        name="programs-that-differ-are-mapped",
        guarantee="rule 109",
        file=_POPULATION + "program.py",
        old="if (first.text, first.constants) == (other.text, other.constants):",
        new="if True:",
        tests=("test_what_cannot_be_trained_together_is_named",),
        in_cut=False,
    ),
    Mutant(
        name="all-results-stay-in-memory",
        guarantee="rule 110",
        file="plugins/runs/src/estimator_runs/records/reading.py",
        old="evaluations=_Results(model_dir)",
        new="evaluations=dict(_Results(model_dir))",
        tests=("test_results_of_many_runs_are_not_kept_in_memory",),
        in_cut=False,
    ),
)
