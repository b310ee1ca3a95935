"""The canned estimators: each is an `ec.Estimator` with a ready-made model_fn and the arguments of tf.estimator."""
