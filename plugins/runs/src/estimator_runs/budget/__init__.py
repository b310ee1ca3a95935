"""What to find out before a long training: which learning rate, and which batch size. Nothing is kept of it."""
