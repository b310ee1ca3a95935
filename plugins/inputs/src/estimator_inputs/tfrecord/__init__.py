"""TFRecord files and their tf.Examples, without TensorFlow."""
