"""Regression with the Huber loss."""
