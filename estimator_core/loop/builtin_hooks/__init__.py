"""The hooks a run has without any plugin; one file each."""
