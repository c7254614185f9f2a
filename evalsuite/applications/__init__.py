"""What an application under test is given: a model of its case, clients of the openai package, an endpoint."""
