"""The commands `estimator completion` and `estimator doctor`."""
