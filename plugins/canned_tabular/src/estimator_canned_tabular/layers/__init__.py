"""The part of feature columns that runs on the device: numbers, lookups and sums."""
