"""Finds old hook members and moved paths of the core in a plugin's sources, names the new forms and rewrites them.

`sources.py` finds the files, and `paths.py` knows which name moved to which place. `imports.py`, `texts.py`,
`hook_members.py` (with `wakes.py` and `followed.py`) and `private_use.py` each find one kind of old form, `edits.py`
changes text, and `migrate.py` combines them. `requirements.py` knows the packages that the new forms need.
"""

from estimator_testing.migration.findings import Finding
from estimator_testing.migration.migrate import Migrated, migrate_file
from estimator_testing.migration.requirements import lacking
from estimator_testing.migration.sources import source_files

__all__ = ["Finding", "Migrated", "lacking", "migrate_file", "source_files"]
