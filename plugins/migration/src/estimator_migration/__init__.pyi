"""The public names, typed; `__init__.py` imports each when it is first used."""

from estimator_migration.checking import Use as Use
from estimator_migration.checking import check as check
from estimator_migration.checkpoints import Converted as Converted
from estimator_migration.checkpoints import convert as convert
from estimator_migration.checkpoints import convert_checkpoint as convert_checkpoint
from estimator_migration.proving import Proof as Proof
from estimator_migration.proving import prove as prove
from estimator_migration.rewriting import Rewritten as Rewritten
from estimator_migration.rewriting import rewrite as rewrite
from estimator_migration.rows import Row as Row
from estimator_migration.rows import Verdict as Verdict
from estimator_migration.rows import find as find
from estimator_migration.rows import table as table
from estimator_migration.savedmodels import SavedModel as SavedModel
from estimator_migration.savedmodels import read_saved_model as read_saved_model
from estimator_migration.savedmodels import receiver_source as receiver_source

__version__: str
