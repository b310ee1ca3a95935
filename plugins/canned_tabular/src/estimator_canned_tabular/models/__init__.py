"""The model_fns of the canned models. Each is made from a head, columns and options."""
