"""Convert records to tallies of scores, and tallies to tables, charts, verdicts and Markdown."""
