"""The one line that every suite of cases has."""

pytest_plugins = ["evalsuite.plugin"]
