"""Several runs of one program, trained together on one device; each keeps a model_dir of its own."""
