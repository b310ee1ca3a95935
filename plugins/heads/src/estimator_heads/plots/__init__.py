"""Plots of an evaluation, drawn with matplotlib (the extra `plots`)."""
