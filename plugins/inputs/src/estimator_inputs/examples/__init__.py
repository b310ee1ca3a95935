"""tf.Example without TensorFlow: the message, specifications of features, requests that carry records."""
