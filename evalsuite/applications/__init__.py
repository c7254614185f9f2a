"""What an application under test gets: the model of its case, clients of the openai package, an endpoint."""
