"""Damaged files of a run: does any command crash, or prove what was changed?

Every value of `run.json` and of a record is replaced by wrong ones, one at a time; each file is cut off and has bits
flipped at random places. `crashed` are commands that end with an exception, or not at all, rather than with a status
and, where need be, one message; `wrong` are changed records that `evalsuite runs verify` takes for proved.
"""

from __future__ import annotations

import copy
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections import Counter
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from row import Row

from evalsuite.cli import main as evalsuite

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SUITE = """
from evalsuite import Sample, benchmark, exact_match, generate

SAMPLES = [Sample(id=str(n), input="Paris", target="Paris", tags={"region": "eu"}) for n in range(3)]

def echo(messages):
    return messages[-1]["content"]

@benchmark("capitals", SAMPLES, solver=generate(max_tokens=8), scorers=[exact_match()])
def test_capitals(scores):
    assert scores["exact_match"] == 1.0
"""
WRONG: tuple[Any, ...] = (None, -1, 1e308, "wrong", [], {}, [None], {"a": []})
COMMANDS = (
    ("report", "r"), ("gate", "r"), ("compare", "base", "r"), ("compare", "r", "base"), ("verify", "r"),
    ("merge", "joined", "r"), ("runs",), ("show", "r", "0"), ("diff", "r", "base"),
    ("view", "--no-open", "r"), ("view", "--no-open"),
)  # fmt: skip
FILES = ("run.json", "records.jsonl", "summary.json", "journal.sqlite")
LONGEST = 30
"""Seconds that a command may take."""


def make_runs(folder: Path) -> None:
    """Two runs of three cases each."""
    (folder / "test_capitals.py").write_text(SUITE)
    for run in ("base", "r"):
        command = [sys.executable, "-m", "pytest", "-q", "-pevalsuite.plugin", f"--run={run}"]
        command += ["--model=function:test_capitals:echo", "--gate=capitals.exact_match >= 0.5"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def replaced(whole: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Each place in a JSON value, with each wrong value of another type or meaning."""
    value = whole
    for step in place:
        value = value[step]
    for wrong in WRONG if place else ():
        changed = copy.deepcopy(whole)
        inner = changed
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = wrong
        yield place, changed
    for step in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from replaced(whole, (*place, step))


class Attack:
    """Changes files of a run, tries all commands on it, and puts it back.

    Args:
        folder: of the suite, which is the working directory.
    """

    def __init__(self, folder: Path) -> None:
        self.run = folder / "reports" / "r"
        self._whole = folder / "whole"
        shutil.copytree(folder / "reports", self._whole)

    def original(self, name: str) -> bytes:
        """A file as the run left it."""
        return (self._whole / "r" / name).read_bytes()

    def commands(self, change: Callable[[], object], where: str) -> Counter[str]:
        """Outcomes of all commands after a change, each on files of its own: "crashed", "proved" or "ended"."""
        outcomes: Counter[str] = Counter()
        for command in COMMANDS:
            shutil.rmtree(self.run.parent)
            shutil.copytree(self._whole, self.run.parent)
            change()
            if command[0] == "view":
                # Else the page that is there is shown.
                (self.run / "report.html").unlink(missing_ok=True)
            outcomes[self._outcome(command, where)] += 1
        return outcomes

    def _outcome(self, command: tuple[str, ...], where: str) -> str:
        signal.alarm(LONGEST)
        try:
            with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
                status = evalsuite(command)
        except SystemExit as end:
            status = int(end.code or 0)
        except Exception as error:  # noqa: BLE001 - that is what is counted
            last = traceback.extract_tb(error.__traceback__)[-1]
            words = f"{type(error).__name__}: {error!s:.100} ({last.filename}:{last.lineno})"
            sys.stderr.write(f"{' '.join(command)}: {where}: {words}\n")
            return "crashed"
        finally:
            signal.alarm(0)
        return "proved" if command[0] == "verify" and status == 0 else "ended"


def wrong_values(attack: Attack, name: str, *, every: int) -> Row:
    """All replacements in a file, of `records.jsonl` in its first line."""
    file = attack.run / name
    lines = file.read_text("utf-8").splitlines() if name == "records.jsonl" else [file.read_text("utf-8")]
    outcomes: Counter[str] = Counter()
    for number, (place, changed) in enumerate(replaced(json.loads(lines[0]))):
        if number % every == 0:
            text = "\n".join([json.dumps(changed), *lines[1:]]) + "\n"
            where = f"{name}: {'.'.join(map(str, place))}"
            outcomes += attack.commands(lambda text=text: file.write_text(text, "utf-8"), where)  # type: ignore[misc] # mypy cannot infer it
    wrong = outcomes["proved"] if name == "records.jsonl" else 0
    return Row(f"files: a wrong value in {name}", outcomes.total(), 0, wrong, outcomes["crashed"])


def cut_off(content: bytes, chance: random.Random) -> bytes:
    """The end is gone."""
    return content[: chance.randrange(len(content))]


def flipped(content: bytes, chance: random.Random) -> bytes:
    """One bit is another."""
    changed = bytearray(content)
    changed[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def random_damage(attack: Attack, name: str, damage: Callable[..., bytes], words: str, times: int) -> Row:
    """A file damaged at random places."""
    file, chance = attack.run / name, random.Random(name)
    outcomes: Counter[str] = Counter()
    for _ in range(times):
        content = damage(attack.original(name), chance)
        outcomes += attack.commands(lambda content=content: file.write_bytes(content), f"{name}, {words}")  # type: ignore[misc] # likewise
    wrong = outcomes["proved"] if name == "records.jsonl" else 0
    return Row(f"files: {name} {words}", outcomes.total(), 0, wrong, outcomes["crashed"])


def hung(*_: object) -> None:
    """What the alarm raises."""
    raise TimeoutError(f"not done after {LONGEST} s")


def rows(*, short: bool) -> Iterator[Row]:
    """The part of the table."""
    signal.signal(signal.SIGALRM, hung)
    os.environ["NO_COLOR"] = "1"
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        make_runs(Path(folder))
        attack = Attack(Path(folder))
        for name in ("run.json", "records.jsonl"):
            yield wrong_values(attack, name, every=60 if short else 1)
        for name in FILES:
            yield random_damage(attack, name, cut_off, "cut off at a random byte", 1 if short else 20)
            yield random_damage(attack, name, flipped, "with a flipped bit", 2 if short else 40)
