"""Scales a feature by mean and deviation."""
