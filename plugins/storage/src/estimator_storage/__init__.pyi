"""The public names, typed; `__init__.py` imports each when it is first used."""

from estimator_storage.azure import open_azure as open_azure
from estimator_storage.doctor import Finding as Finding
from estimator_storage.doctor import examine as examine
from estimator_storage.gcs import open_gcs as open_gcs
from estimator_storage.s3 import open_s3 as open_s3

__version__: str
