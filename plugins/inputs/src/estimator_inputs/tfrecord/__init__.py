"""TFRecord files and the tf.Examples in them, without TensorFlow."""
