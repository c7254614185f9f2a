"""Collection: a benchmark's function becomes its cases, and the command line picks among them."""
