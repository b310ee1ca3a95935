"""A model_dir in S3."""

from estimator_core.storage import open_storage
from plugins.storage.tests import emulators
from plugins.storage.tests.runs import check_all_verbs


def test_every_verb_works_with_a_model_dir_in_s3(s3, tmp_path):
    emulators.s3_client().create_bucket(Bucket="runs")
    check_all_verbs("s3://runs/team/one", str(tmp_path / "here"))
    assert not list(open_storage("s3://runs/team/one-more").list(""))
