"""The hooks that a run without plugins needs. estimator-hooks re-exports them with its own."""
