"""A model_dir in S3."""

import pytest

import estimator_core as ec
from estimator_core.cli import main
from estimator_core.errors import ExportError
from estimator_core.storage import open_storage
from plugins.storage.tests import emulators
from plugins.storage.tests.runs import check_all_verbs


def test_every_verb_works_with_a_model_dir_in_s3(s3, tmp_path):
    emulators.s3_client().create_bucket(Bucket="runs")
    check_all_verbs("s3://runs/team/one", str(tmp_path / "here"))
    assert not list(open_storage("s3://runs/team/one-more").list(""))


@pytest.mark.plugins
@pytest.mark.parametrize("words", [["evaluate"], ["evaluate", "line.py"], ["explain", "line.py"]])
def test_a_bucket_that_is_not_there_is_named(s3, tmp_path, monkeypatch, capsys, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "line.py").write_text("def experiment_fn(config, hparams):\n    raise AssertionError\n")
    assert main([*words, "--model-dir", "s3://no-such-bucket/one"]) == 2
    told = capsys.readouterr().err
    assert "s3://no-such-bucket/one/journal: the bucket or container does not exist" in told
    assert "Train first" not in told


@pytest.mark.plugins
def test_an_export_that_is_not_there_is_an_export_error(s3):
    emulators.s3_client().create_bucket(Bucket="exports")
    for url in ("s3://exports/absent", "s3://no-such-bucket/one"):
        with pytest.raises(ExportError, match=rf"{url}.*Correct the URL of the export\."):
            ec.export.load(url)
