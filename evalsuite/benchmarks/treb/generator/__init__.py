"""Question-answer pairs from tables by templates: each is answered twice, in plain Python and by a program."""
