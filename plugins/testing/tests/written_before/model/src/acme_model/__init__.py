"""Regression with one hidden layer."""
