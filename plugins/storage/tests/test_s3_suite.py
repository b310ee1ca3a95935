"""S3 keeps the contract of storages, with obstore against moto."""

import pytest

from estimator_storage import open_s3
from plugins.storage.tests import emulators
from plugins.storage.tests.stores import StoreSuite


class TestS3(StoreSuite):
    scheme = "s3"
    secrets = tuple(emulators.S3_KEYS[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))

    @pytest.fixture(autouse=True)
    def _server(self, s3):
        self.address = s3
        self.client = emulators.s3_client()

    def make_bucket(self, name):
        self.client.create_bucket(Bucket=name)

    def remove_bucket(self, name):
        for listed in self.client.list_objects_v2(Bucket=name).get("Contents", []):
            self.client.delete_object(Bucket=name, Key=listed["Key"])
        self.client.delete_bucket(Bucket=name)

    def open_through(self, location, address):
        return open_s3(location, options={"s3_endpoint": f"http://{address}"})
