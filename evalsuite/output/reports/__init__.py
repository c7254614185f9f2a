"""Convert records to tallies, and tallies to tables, charts, verdicts and Markdown."""
