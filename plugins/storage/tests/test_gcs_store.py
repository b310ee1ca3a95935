"""GCS keeps the contract of storages, with google-cloud-storage against Google's testbench."""

import pytest

from estimator_core.storage import open_storage
from estimator_storage import open_gcs
from plugins.storage.tests import emulators
from plugins.storage.tests.stores import StoreSuite


class TestGcs(StoreSuite):
    scheme = "gs"

    @pytest.fixture(autouse=True)
    def _server(self, gcs):
        self.address = gcs

    def make_bucket(self, name):
        emulators.gcs_bucket(self.address, name)

    def remove_bucket(self, name):
        whole = open_storage(f"gs://{name}")
        whole.delete([entry.key for entry in whole.list("")])
        whole.close()
        host, port = self.address
        emulators.ask(f"http://{host}:{port}/storage/v1/b/{name}", "DELETE")

    def open_through(self, location, address):
        return open_gcs(location, options={"gcs_endpoint": f"http://{address}"})
