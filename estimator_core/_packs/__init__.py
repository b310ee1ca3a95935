"""Packs: one object per process with raw arrays, written directly from memory and read in parts."""
