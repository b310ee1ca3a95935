"""Ends the training once the loss is low enough."""
