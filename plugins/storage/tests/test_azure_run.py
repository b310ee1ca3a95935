"""A model_dir in Azure."""

from plugins.storage.tests import emulators
from plugins.storage.tests.runs import check_all_verbs


def test_every_verb_works_with_a_model_dir_in_azure(azure, tmp_path):
    emulators.azure_container(azure, "runs", "PUT")
    check_all_verbs("az://runs/team/one", str(tmp_path / "here"))
