"""The command `estimator bert-classifier`."""
