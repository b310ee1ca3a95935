"""What comes from TensorFlow: exported models and directories of transformers."""

from tests.mutants.record import Mutant

_MODELS = "plugins/migration/src/estimator_migration/savedmodels/"

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
)
