"""When to export; one exporter a file."""
