"""Variables, the modules that use them, and the outputs that a `model_fn` declares while it is traced."""
