"""A model_dir in Google Cloud Storage."""

from plugins.storage.tests import emulators
from plugins.storage.tests.runs import check_all_verbs


def test_every_verb_works_with_a_model_dir_in_gcs(gcs, tmp_path):
    emulators.gcs_bucket(gcs, "runs")
    check_all_verbs("gs://runs/team/one", str(tmp_path / "here"))
