"""pytest sessions that ask by way of a gateway service."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

CASES = """
from evalsuite import Sample, benchmark, exact_match, generate

SAMPLES = [Sample(id=f"s{number}", input=f"word {number}", target=f"word {number}") for number in range(8)]

@benchmark("words", SAMPLES, solver=generate(max_tokens=8), scorers=[exact_match()])
def test_words(scores):
    assert scores["exact_match"] == 1.0
"""


def session(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_words.py").write_text(CASES)
    (folder / "conftest.py").write_text('pytest_plugins = ["evalsuite.plugin"]\n')
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--model=gpt-test", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


def test_shards_pay_each_request_once_and_no_session_needs_a_key(
    start_gateway: Any, chat_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    service = start_gateway(f"--upstream={chat_server.url}", "--price=gpt-test=100/100")
    by_way = (f"--gateway={service.url}", f"--model-base-url={chat_server.url}")
    first = session(tmp_path, *by_way, "--run=first", "-n2")
    assert first.returncode == 0, first.stdout
    second = session(tmp_path, *by_way, "--run=second")
    assert second.returncode == 0, second.stdout
    assert len(chat_server.bodies) == 8
    records = [(tmp_path / "reports" / run / "records.jsonl").read_text() for run in ("first", "second")]
    assert '"cost":0.0015' in records[0]
    # Each run keeps its own answers, and is replayed without any gateway.
    service.kill()
    assert session(tmp_path, "--replay=second").returncode == 0


def test_a_gateway_that_is_not_there_is_one_message_before_any_case(tmp_path: Path) -> None:
    result = session(tmp_path, "--gateway=http://127.0.0.1:9")
    assert result.returncode == 4
    assert "is `evalsuite gateway` running there?" in result.stderr
    beyond = session(tmp_path, "--gateway=http://build.example:4747")
    assert "ssh -L 4747:127.0.0.1:4747 build.example" in beyond.stderr
