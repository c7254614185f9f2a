"""Statistics: intervals, agreement, correlation, paired tests, repeats, sequences. Works without pytest.

Invalid input (no values, nan, lists of different length) raises ValueError. If a statistic is undefined on valid input
(kappa with one category, a correlation with a constant), the result is nan. The page docs/statistics.md says which
statistic to use when; each docstring names its source.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
