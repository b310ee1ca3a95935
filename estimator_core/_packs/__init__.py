"""Packs: one object a process with raw arrays, written straight from memory and read in parts."""
