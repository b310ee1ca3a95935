"""What estimator-tables declares to estimator-core. Imported at start-up: keep it light."""

ESTIMATOR_PLUGIN_API = (1, 0)
