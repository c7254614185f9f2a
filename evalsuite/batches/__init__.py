"""`--batch`: sends requests together to a server's batch interface, at half the price."""
