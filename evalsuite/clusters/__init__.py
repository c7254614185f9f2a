"""`evalsuite ray`: runs the shards of a suite as tasks of a Ray cluster."""
