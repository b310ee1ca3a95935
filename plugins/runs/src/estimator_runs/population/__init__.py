"""Several runs of one program, trained together on one device. Each has its own model_dir."""
