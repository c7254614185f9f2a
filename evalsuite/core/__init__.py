"""Types, protocols, errors, settings: what every other room is built on."""
