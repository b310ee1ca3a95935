"""Programs from configuration files: read, merged, checked, built."""
