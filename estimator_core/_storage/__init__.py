"""Storage: the objects of a model_dir, by name."""
