"""Head, torso and tail: the names of the buckets, the most popular first."""

BUCKETS = ("head", "torso", "tail")
