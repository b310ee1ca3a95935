"""model_fns of the canned models: a head, columns and options in; a function of features and labels out."""
