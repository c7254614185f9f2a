"""What a run leaves behind and what is read off it: records, runs, tallies."""
