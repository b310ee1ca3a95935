"""Trials before a long training: the learning rate, the batch size and the amount of data. Their runs are not kept."""
