"""Ready-made scorers: of answers, their form and meaning, and of tool calls."""
