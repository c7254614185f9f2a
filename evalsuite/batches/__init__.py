"""`--batch`: send requests together through a server's batch interface, at half the price."""
