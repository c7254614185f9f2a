"""What is decided from results: gates, the comparison with a baseline, early stops, the verdict."""
