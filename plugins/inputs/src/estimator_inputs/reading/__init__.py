"""Reading of rows from files: blocks of several files in turn, shuffled windows of rows, batches, and positions."""
