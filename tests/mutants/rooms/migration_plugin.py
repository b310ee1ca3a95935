"""What comes from TensorFlow: exported models and directories of transformers."""

from tests.mutants.record import Mutant

_MODELS = "plugins/migration/src/estimator_migration/savedmodels/"

_PROVING = "plugins/migration/src/estimator_migration/proving/"

_DIRECTORIES = "plugins/canned_bert/src/estimator_canned_bert/"

MUTANTS = (
    Mutant(
        name="every-architecture-is-bert",
        guarantee="rule 120",
        file=_DIRECTORIES + "weights/transformers.py",
        old="if _architecture(place) in ARCHITECTURES else",
        new="if True else",
        tests=("test_other_architectures_keep_their_names",),
        in_cut=False,
    ),
    Mutant(
        name="pickled-weights-are-no-checkpoint",
        guarantee="rule 120",
        file=_DIRECTORIES + "plugin.py",
        old='                "pytorch_model.bin",\n',
        new="",
        tests=("test_what_cannot_be_read_says_why",),
        in_cut=False,
    ),
    Mutant(
        name="a-pickle-imports-what-it-names",
        guarantee="rule 135",
        file=_DIRECTORIES + "weights/torch_file.py",
        old='        raise ArgumentError(\n            f"{self._path} names',
        new='        return super().find_class(module, name)\n        raise ArgumentError(\n            f"{self._path} names',
        tests=("test_what_is_no_tensor_is_refused_before_it_is_imported",),
        in_cut=False,
    ),
    Mutant(
        name="slots-of-partitioned-variables-are-unknown",
        guarantee="rule 134",
        file="plugins/migration/src/estimator_migration/checkpoints/slots.py",
        old='_PLACES = ("", "t_0/", "part_0/")',
        new='_PLACES = ("",)',
        tests=("test_slots_of_canned_estimators_of_tensorflow_1",),
        in_cut=False,
    ),
    Mutant(
        name="the-momentum-of-keras-keeps-its-rate",
        guarantee="rule 134",
        file="plugins/migration/src/estimator_migration/checkpoints/slots.py",
        old="    return -1.0 / rate if rate and not decay else math.nan",
        new="    return 1.0",
        tests=("test_the_momentum_of_keras_is_freed_of_its_rate",),
        in_cut=False,
    ),
    Mutant(
        name="a-step-without-a-category-touches-nothing",
        guarantee="rule 82",
        file="plugins/canned_tabular/src/estimator_canned_tabular/layers/sequence_features.py",
        old='if row_sparse != "as_tf" or not ids.shape[1]:',
        new="if True:",
        tests=("test_as_recorded[row_0]",),
        in_cut=False,
    ),
    Mutant(
        name="a-part-of-a-saved-model-is-the-whole",
        guarantee="rule 119",
        file=_MODELS + "wire.py",
        old="        if place > len(message):\n",
        new="        if False:\n",
        tests=("test_a_part_of_a_file_is_refused_at_every_length",),
        in_cut=False,
    ),
    Mutant(
        name="every-parsed-feature-is-required",
        guarantee="rule 119",
        file=_MODELS + "examples.py",
        old="default=_nested(default, sizes) if default else None",
        new="default=None",
        tests=("test_features_vocabularies_and_assets",),
        in_cut=False,
    ),
    Mutant(
        name="a-vocabulary-belongs-to-no-feature",
        guarantee="rule 119",
        file=_MODELS + "vocabularies.py",
        old="looked_up.pop() if len(looked_up) == 1 else None",
        new="None",
        tests=("test_features_vocabularies_and_assets",),
        in_cut=False,
    ),
    Mutant(
        name="every-difference-of-a-free-run-is-rounding",
        guarantee="rule 154",
        file=_PROVING + "proof.py",
        old="within = bool(self.led) and all(each.difference <= self.tolerance for each in self.led)",
        new="within = bool(self.led)",
        tests=("test_another_program_is_no_rounding",),
        in_cut=False,
    ),
    Mutant(
        name="steps-are-not-led",
        guarantee="rule 154",
        file=_PROVING + "led.py",
        old="            run.assign(self.placed(run, self._recorded.weights[step]))\n",
        new="",
        tests=("test_grown_rounding_is_told_from_another_program",),
        in_cut=False,
    ),
    Mutant(
        name="attributes-are-not-followed",
        guarantee="rule 158",
        file="plugins/migration/src/estimator_migration/assigning.py",
        old="            self.values.setdefault(name, []).append(value)",
        new="            pass",
        tests=("test_check_names_every_use_and_no_other",),
        in_cut=False,
    ),
    Mutant(
        name="line-ends-are-rewritten",
        guarantee="rule 216",
        file="plugins/migration/src/estimator_migration/cli/files.py",
        old="source.encode(self.coding)",
        new="source.replace('\\r\\n', '\\n').encode(self.coding)",
        tests=("test_rewrite_keeps_line_ends_and_the_mark_of_unicode",),
        in_cut=False,
    ),
)
