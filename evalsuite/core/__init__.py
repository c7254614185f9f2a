"""Types, protocols, errors and settings, which all other packages build on."""
