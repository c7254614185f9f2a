"""`evalsuite gateway`: the gateway as a separate service, for many sessions and for any OpenAI client."""
