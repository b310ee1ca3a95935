"""Reading files of rows: blocks of several files in turn, shuffled windows of them, batches, positions."""
