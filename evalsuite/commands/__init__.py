"""The commands of `evalsuite`, one file each: `add_arguments(parser)` and `run(options) -> exit status`."""
