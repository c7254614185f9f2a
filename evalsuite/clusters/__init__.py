"""`evalsuite ray`: the shards of a suite as tasks of a Ray cluster."""
