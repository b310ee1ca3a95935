"""The commands `estimator run`, `estimator export` and `estimator evaluate`, and their parts."""
