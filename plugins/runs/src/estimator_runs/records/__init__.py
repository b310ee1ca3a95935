"""Many runs, read from what they left: tables, differences, statistics, a page. No server, no jax."""
