"""Which policy says when a training call saves."""

from __future__ import annotations

from collections.abc import Sequence

from estimator_core._plugins import Plugins
from estimator_core._plugins.roles import component_of
from estimator_core.config import RunConfig
from estimator_core.hooks import CheckpointPolicy, Hook

_ROLE = "checkpoint_policy"


def has_policy(config: RunConfig) -> bool:
    """Whether a config asks for checkpoints: by a component in the role, or by a cadence.

    Example:
        >>> has_policy(RunConfig(save_checkpoints_steps=10))
        True
        >>> has_policy(RunConfig(save_checkpoints_steps=10, components={"checkpoint_policy": None}))
        False
    """
    if _ROLE in config.components:
        return config.components[_ROLE] is not None
    return bool(config.save_checkpoints_steps or config.save_checkpoints_secs)


def checkpoint_policy(config: RunConfig, plugins: Plugins, hooks: Sequence[Hook]) -> CheckpointPolicy | None:
    """The policy of a call: the first among its hooks, else that of the config; None where nothing is saved.

    Args:
        config: names the component, which is made with its cadence: `save_steps` and `save_secs`.
        plugins: where the component is looked up.
        hooks: of the call.

    Raises:
        PluginLookupError: a component that is named does not exist.
        PluginError: it cannot be made, or is no policy.
    """
    given = next((hook for hook in hooks if isinstance(hook, CheckpointPolicy)), None)
    if given is not None or not has_policy(config):
        return given
    steps, secs = config.save_checkpoints_steps or None, config.save_checkpoints_secs or None
    policy: CheckpointPolicy | None = component_of(_ROLE, config.components, plugins, save_steps=steps, save_secs=secs)
    return policy
