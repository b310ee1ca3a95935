"""The policy file of a project, and the lock file of its plugins."""

from estimator_policy.effective import effective_settings as effective_settings
from estimator_policy.layers import Layer as Layer
from estimator_policy.layers import Setting as Setting
from estimator_policy.layers import resolve as resolve
from estimator_policy.locking import write_lock as write_lock
from estimator_policy.reading import read_policy as read_policy

__version__ = "0.1.0"

__all__ = ["Layer", "Setting", "effective_settings", "read_policy", "resolve", "write_lock"]
