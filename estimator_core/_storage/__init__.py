"""Storage: the place of a model_dir, as named objects."""
