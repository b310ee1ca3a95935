"""Adapters to the module libraries that the core knows; each imports its library only once a model uses it."""
