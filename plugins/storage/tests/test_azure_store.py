"""Azure keeps the contract of storages, with obstore against azurite."""

import pytest

from estimator_storage import open_azure
from plugins.storage.tests import emulators
from plugins.storage.tests.stores import StoreSuite


class TestAzure(StoreSuite):
    scheme = "az"
    secrets = (emulators.AZURITE_KEY,)

    @pytest.fixture(autouse=True)
    def _server(self, azure):
        self.address = azure

    def make_bucket(self, name):
        emulators.azure_container(self.address, name, "PUT")

    def remove_bucket(self, name):
        emulators.azure_container(self.address, name, "DELETE")

    def open_through(self, location, address):
        return open_azure(location, options={"azure_endpoint": f"http://{address}/{emulators.AZURITE_ACCOUNT}"})
