"""tf.Example without TensorFlow: the message, specifications of features, and requests with records."""
