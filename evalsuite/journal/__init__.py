"""The journal: an SQLite file with a run's sessions, requests, answers, costs and records."""
