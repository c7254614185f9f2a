"""While cases run: what comes next, prefetching, fixtures, outcomes."""
