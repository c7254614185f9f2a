"""`evalsuite gateway`: the gateway as a service of its own, for many sessions and for any OpenAI client."""
