"""A run as one journal: one SQLite file that holds what was asked, answered, billed and recorded, and by whom."""
