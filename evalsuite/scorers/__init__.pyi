from .answers import (
    bleu,
    contains,
    denotation,
    exact_match,
    json_schema,
    matches,
    numeric_match,
    one_of,
    rouge_l,
    similar,
    token_f1,
)
from .foreign import from_autoevals, from_deepeval, from_inspect, from_ragas
from .spans import span
from .sql import sql_execution
from .trajectories import ToolUse, any_of, call, expect_state, tool_calls, tool_uses
from .unit_tests import passes_tests

__all__ = [
    "ToolUse",
    "any_of",
    "bleu",
    "call",
    "contains",
    "denotation",
    "exact_match",
    "expect_state",
    "from_autoevals",
    "from_deepeval",
    "from_inspect",
    "from_ragas",
    "json_schema",
    "matches",
    "numeric_match",
    "one_of",
    "passes_tests",
    "rouge_l",
    "similar",
    "span",
    "sql_execution",
    "token_f1",
    "tool_calls",
    "tool_uses",
]
