"""Tables, differences, statistics and a page of many runs, read from their model_dirs, without server and jax."""
