"""Programs from configuration files: the files are read, merged, checked and built."""
