"""`sql_execution`: run the model's SQL query and the target query in the sandbox, and compare the results."""

import json
import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from evalsuite.core.errors import ScoringError
from evalsuite.core.threads import run_in_thread
from evalsuite.core.types import SHARE, Metric, Sample, Score, Transcript
from evalsuite.sandbox import Limits, Sandbox
from evalsuite.sandbox.sandbox import SandboxUser

Match = Literal["spider", "bird"]
_SANDBOX_CODE = files(__package__).joinpath("sql_inside.py").read_text("utf-8")
# A code block and its language. The SQL may begin on the same line as the fence, and the last block may be unclosed.
_BLOCK = re.compile(r"```[ \t]*(?:(\w*sql\w*)\b|[^\n`]*\n)(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
_QUERY = re.compile(
    r"(?:^|(?<=[:>]))[ \t]*((?:SELECT\b|WITH\s+(?:RECURSIVE\s+)?\w+\s*(?:\([^()]*\)\s*)?AS\b)"
    r"(?:(?!;?[ \t]*\n\s*\n|;[ \t]*\n).)*)",
    re.MULTILINE | re.IGNORECASE | re.DOTALL,
)
_END_SIGNS = re.compile(r"<[|\uff5c][\w\u2581]{1,20}[|\uff5c]>|</s>")
_PROGRAM = """\
{inside}
import json, sys
for outcome in compare_queries(sys.stdin.buffer.read(), *{given!r}):
    print(json.dumps(outcome), flush=True)
"""
MOST_BYTES = 1 << 30
LOADING = 30.0  # Extra seconds, besides the two queries' time, to copy the database into the sandbox.


@dataclass(frozen=True, slots=True)
class SqlExecution(SandboxUser):
    """Scores an SQL query by its result; the function `sql_execution` makes it."""

    match: Match
    timeout: float
    root: Path

    @property
    def metrics(self) -> dict[str, Metric]:
        """The declaration of the score."""
        return {"sql_execution": SHARE}

    async def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, Score]:
        sql = find_sql(transcript.answer)
        cause, note = await self._run_both_queries(sample, sql) if sql else ("missing", "the answer contains no query")
        return {"sql_execution": Score(float(cause == "right"), note, facts={"sql": cause})}

    async def _run_both_queries(self, sample: Sample, sql: str) -> tuple[str, str]:
        """Return the outcome of the answer's query (`right`, `wrong`, `failed` or `timed out`), and an explanation."""
        if not isinstance(sample.target, str) or not isinstance(sample.metadata.get("database"), str):
            raise ScoringError(
                f"sql_execution: sample {sample.id!r} needs the right query as its target and the path of an SQLite "
                "file under 'database' in its metadata"
            )
        database = await run_in_thread(_read_database, self.root / sample.metadata["database"])
        given = (sample.target, sql, self.match, self.timeout)
        execution = await self.sandbox.run(
            _PROGRAM.format(inside=_SANDBOX_CODE, given=given), timeout=2 * self.timeout + LOADING, stdin=database
        )
        outcomes: list[Any] = [json.loads(line) for line in execution.stdout.splitlines()]
        if not outcomes or "gold" in outcomes[0]:
            reason = outcomes[0]["gold"] if outcomes else execution.error
            raise ScoringError(f"sql_execution: the right query of sample {sample.id!r} fails: {reason}")
        last = outcomes[-1]
        if "same" in last:
            rows = "right and given query return {} and {} rows".format(*last["rows"])
            return ("right", "returns the right rows") if last["same"] else ("wrong", rows)
        failure = last.get("failed") or execution.error or "the program ended early"
        timed_out = execution.timed_out or failure == "interrupted"
        return ("timed out", f"ran longer than {self.timeout:g} s") if timed_out else ("failed", failure[:300])


def _read_database(path: Path) -> bytes:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise ScoringError(f"sql_execution: {path} has more than {MOST_BYTES >> 20:,} MiB")
        return path.read_bytes()
    except OSError as error:
        raise ScoringError(f"sql_execution: {path} cannot be read: {error.strerror or error}") from error


def find_sql(answer: str) -> str:
    """Find the SQL query in an answer.

    Prefer the last SQL block; otherwise the last block with a query, the last block, or the last query outside blocks,
    in this order. Without blocks or queries, return the whole answer.
    """
    text = _END_SIGNS.sub("", answer)
    blocks = _BLOCK.findall(text)
    marked = [code for language, code in blocks if language]
    found = marked or [code for _, code in blocks if _QUERY.search(code)] or [code for _, code in blocks]
    return str((found or _QUERY.findall(text) or [text])[-1]).strip()


def sql_execution(
    *, match: Match = "spider", timeout: float = 30.0, root: Path | str = ".", sandbox: Sandbox | None = None
) -> SqlExecution:
    """Score `sql_execution`: 1.0 if the answer's query returns what the target's query returns, otherwise 0.0.

    Both queries run in the sandbox and cannot change the database. The database is a copy of the SQLite file that
    `database` in the sample's metadata names. If the target query fails, the case has an error. `facts["sql"]` in the
    record is the outcome of the answer's query: `right`, `wrong`, `failed`, `timed out` or `missing`.

    Args:
        match: how results are compared. `spider` compares multisets of rows, or lists if the target query has ORDER BY;
            columns may be in any order, and DISTINCT is ignored, as in Spider's evaluator (Zhong et al., arXiv
            2010.02840). `bird` compares sets of rows (Li et al., arXiv 2305.03111).
        timeout: time limit of each query in seconds. A result may have at most 100,000 rows.
        root: the folder in which the databases' relative paths begin.
        sandbox: a sandbox that is shared with other scorers; by default a new one.
    """
    limits = Limits(memory=4 << 30, files=2 * MOST_BYTES, file=MOST_BYTES)
    return SqlExecution(sandbox or Sandbox(limits=limits, preload=()), sandbox is None, match, timeout, Path(root))
