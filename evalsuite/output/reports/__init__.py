"""Turn records into tallies of scores, and tallies into tables, charts, verdicts and Markdown."""
