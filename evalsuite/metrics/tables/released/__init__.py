"""The H-Score as the scripts released with Struc-Bench compute it, accidents included.

Published numbers came from those scripts, so every part is theirs to 1e-9. Nothing of their code is here;
perf/h_score_plain.py spells the same definition out step by step, and the tests hold the two together.
"""
