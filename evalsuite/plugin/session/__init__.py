"""The session as a whole: its beginning, the controlling process, its end."""
