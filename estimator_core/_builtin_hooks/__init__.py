"""The hooks a run without plugins needs. estimator-hooks re-exports them beside its own."""
