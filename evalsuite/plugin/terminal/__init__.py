"""What the terminal shows: the live line, the closing lines."""
