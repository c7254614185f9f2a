"""The one line that every suite of cases has: it opts this suite into the plugin."""

pytest_plugins = ["evalsuite.plugin"]
