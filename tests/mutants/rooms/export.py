"""Export directories and signatures."""

from tests.mutants.record import Mutant

_ROOM = "estimator_core/_export/"

MUTANTS = (
    Mutant(
        name="two-exports-of-a-second-share-a-name",
        guarantee="fault 21",
        file=_ROOM + "directories.py",
        old="stamp = max([stamp, *(int(path.name) + 1 for path in exports_in(root)[-1:])])",
        new="pass",
        tests=("test_a_name_that_was_deleted_is_not_given_again_to_a_newer_export",),
    ),
    Mutant(
        name="an-export-of-a-living-writer-is-removed",
        guarantee="rule 16",
        file=_ROOM + "directories.py",
        old="if owner.isdigit() and not _alive(int(owner)):",
        new="if owner.isdigit():",
        tests=("test_what_a_dead_writer_left_is_removed_and_a_living_ones_is_not",),
    ),
    Mutant(
        name="what-a-dead-writer-left-stays",
        guarantee="rule 16",
        file=_ROOM + "directories.py",
        old="    _clean(root)\n",
        new="",
        tests=("test_what_a_dead_writer_left_is_removed_and_a_living_ones_is_not",),
    ),
    Mutant(
        name="a-failed-export-leaves-half-of-it",
        guarantee="rule 16",
        file=_ROOM + "directories.py",
        old="shutil.rmtree(temporary, ignore_errors=True)",
        new="pass",
        tests=("test_a_failed_export_leaves_nothing",),
    ),
    Mutant(
        name="any-number-is-an-export",
        guarantee="rule 16",
        file=_ROOM + "directories.py",
        old=" and len(name) == 10",
        new="",
        tests=("test_only_names_of_ten_digits_count_and_others_stay",),
    ),
    Mutant(
        name="the-oldest-exports-stay",
        guarantee="rule 16",
        file=_ROOM + "directories.py",
        old="exports_in(base)[:-keep]",
        new="exports_in(base)[keep:]",
        tests=("test_only_names_of_ten_digits_count_and_others_stay",),
    ),
    Mutant(
        name="one-of-several-outputs-is-the-default",
        guarantee="rule 17",
        file=_ROOM + "signatures.py",
        old="if len(named) > 1:",
        new="if False:",
        tests=("test_several_outputs_need_a_default",),
    ),
    Mutant(
        name="class-names-are-lost",
        guarantee="rule 17",
        file=_ROOM + "signatures.py",
        old="return {name: tuple(names) for name, names in classified.items() if names}",
        new="return {}",
        tests=("test_classification_keeps_its_class_names",),
    ),
    Mutant(
        name="any-object-is-an-output",
        guarantee="rule 17",
        file=_ROOM + "signatures.py",
        old="if not isinstance(value, (PredictOutput, ClassificationOutput, RegressionOutput)):",
        new="if False:",
        tests=("test_names_of_a_multi_head_are_joined_and_other_objects_refused",),
    ),
)
