"""Numbers from a text file, the label last."""
