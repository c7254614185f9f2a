"""The gateway, through which every model call of a run passes."""
