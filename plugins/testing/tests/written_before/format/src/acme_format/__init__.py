"""Programs, weights and manifest in files with checksums."""
