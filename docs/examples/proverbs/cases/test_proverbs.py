"""Does the model know how proverbs end?"""

from collections.abc import Mapping

from evalsuite import benchmark


@benchmark("proverbs")
def test_proverbs(scores: Mapping[str, float]) -> None:
    """One proverb; what a model has to reach over all of them is a gate's to say."""
    assert scores["exact_match"] == 1.0
