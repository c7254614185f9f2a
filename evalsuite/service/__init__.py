"""`evalsuite gateway`: a service that answers model calls of many pytest sessions and of any OpenAI client."""
