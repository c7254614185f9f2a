"""Ready-made scorers: of answers, their form and meaning, and of tool calls."""

from evalsuite.scorers.answers import Matches, OneOf, Similar, matches, one_of, similar
from evalsuite.scorers.json_answers import JsonSchema, json_schema
from evalsuite.scorers.targets import (
    TargetScorer,
    bleu,
    contains,
    exact_match,
    numeric_match,
    rouge_l,
    token_f1,
)
from evalsuite.scorers.trajectories import Calls, ToolUse, any_of, call, calls, tool_uses
from evalsuite.scorers.unit_tests import PassesTests, passes_tests
from evalsuite.scorers.world_state import expect_state

__all__ = [
    "Calls",
    "JsonSchema",
    "Matches",
    "OneOf",
    "PassesTests",
    "Similar",
    "TargetScorer",
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
