"""A run as one journal: an SQLite file of what was asked, answered, billed and recorded, and by which session."""
