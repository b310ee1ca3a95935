"""Programs from configuration files: read, put together, checked, built."""
