"""What is rated in Topical-Chat, on the annotators' own scales.

The scales are those of Mehri and Eskenazi, "USR: An Unsupervised and Reference Free Evaluation Metric for
Dialog Generation" (arXiv 2005.00456, section 3), under the names of UniEval (arXiv 2210.07197).
"""

from evalsuite.judges import Aspect

HUMAN_ASPECTS = (
    Aspect("naturalness", "would a person say it like this?", 1, 3),
    Aspect("coherence", "does it fit what was said before?", 1, 3),
    Aspect("engagingness", "is it interesting, or is it dull?", 1, 3),
    Aspect("groundedness", "1 if it makes use of the background, 0 if not", 0, 1),
)
"""The four that the ChatEval paper reports; the files also hold understandability and an overall rating."""

ASPECT_NAMES = tuple(aspect.name for aspect in HUMAN_ASPECTS)
