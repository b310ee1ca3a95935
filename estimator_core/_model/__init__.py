"""Variables, the modules that use them, and everything a `model_fn` says while it is traced."""
