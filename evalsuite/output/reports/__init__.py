"""From records to tallies, from tallies to tables, pictures, verdicts and Markdown."""
