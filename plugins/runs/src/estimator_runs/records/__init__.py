"""Many runs, read from their model_dirs: tables, differences, statistics, a page. No server, no jax."""
