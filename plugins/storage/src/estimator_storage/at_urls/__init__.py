"""Model_dirs in a working copy, and checkpoints, exports and files at URLs. The core calls these modules by name."""

from estimator_storage.at_urls.audit import faults_in_store
from estimator_storage.at_urls.checkpoints import fetched
from estimator_storage.at_urls.exports import export_place
from estimator_storage.at_urls.files import copied_files, local_copy, published_file
from estimator_storage.at_urls.working_copy import WorkingCopy, working_copy

__all__ = [
    "WorkingCopy",
    "copied_files",
    "export_place",
    "faults_in_store",
    "fetched",
    "local_copy",
    "published_file",
    "working_copy",
]
