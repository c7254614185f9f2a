"""How a sample becomes a transcript."""
