"""`--batch`: requests that are sent together to a server's batch interface, at half the price."""
