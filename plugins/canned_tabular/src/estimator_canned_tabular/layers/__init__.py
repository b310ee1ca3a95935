"""The device part of feature columns: numbers, lookups and sums."""
