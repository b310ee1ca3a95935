"""Serving exports over HTTP: the Open Inference Protocol (KServe V2), JSON and its binary tensor extension."""
