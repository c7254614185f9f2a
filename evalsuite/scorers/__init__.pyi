from .answers import matches, one_of, similar
from .json_answers import json_schema
from .targets import bleu, contains, exact_match, numeric_match, rouge_l, token_f1
from .trajectories import ToolUse, any_of, call, calls, tool_uses
from .unit_tests import passes_tests
from .world_state import expect_state

__all__ = [
    "ToolUse",
    "any_of",
    "bleu",
    "call",
    "calls",
    "contains",
    "exact_match",
    "expect_state",
    "json_schema",
    "matches",
    "numeric_match",
    "one_of",
    "passes_tests",
    "rouge_l",
    "similar",
    "token_f1",
    "tool_uses",
]
