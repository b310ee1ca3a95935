"""Dense layers of a library of one class."""
