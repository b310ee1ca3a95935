"""The exporters, which decide when to export. There is one file per exporter."""
