"""The canned estimators: an `ec.Estimator` around each model_fn, with the constructor arguments of tf.estimator."""
