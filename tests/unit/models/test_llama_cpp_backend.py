"""The embedded model, for real: one server for all tests here, and a few tokens each."""

from __future__ import annotations

import asyncio
import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from evalsuite.core.errors import BackendUnavailable, RequestRefused, SettingsError
from evalsuite.core.types import Completion, Message, Request
from evalsuite.gateway.loop import BackgroundLoop
from evalsuite.models import llama_cpp
from evalsuite.models.llama_cpp import LlamaCppBackend

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import ChatServer
    from tests.unit.models.conftest import Once

# Not imported here: every process of tests collects this file.
pytestmark = pytest.mark.skipif(find_spec("xllamacpp") is None, reason="pip install 'evalsuite[local]'")


class Model:
    """The backend, and a loop to ask it in."""

    def __init__(self) -> None:
        self.loop = BackgroundLoop()
        self.backend = LlamaCppBackend("smollm2?context=256&slots=2&threads=1")

    def ask(self, text: str, **params: object) -> Completion:
        request = Request("local:smollm2", (Message("user", text),), {"max_tokens": 4, "temperature": 0, **params})
        return self.loop.submit(self.backend.complete(request)).result(120)

    def close(self) -> None:
        self.loop.run(self.backend.aclose())
        self.loop.close()


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    model = Model()
    yield model
    model.close()


def test_it_answers_with_tokens_and_their_number(model: Model) -> None:
    answer = model.ask("Say hello.")
    assert answer.text
    assert 1 <= answer.usage.completion_tokens <= 4
    assert answer.usage.prompt_tokens > 4
    assert answer.finish_reason in {"stop", "length"}


def test_the_same_question_at_no_temperature_has_the_same_answer(model: Model) -> None:
    assert model.ask("Capital of France?").text == model.ask("Capital of France?").text


def test_it_gives_the_probabilities_of_its_tokens(model: Model) -> None:
    answer = model.ask("Yes or no?", max_tokens=1, logprobs=True, top_logprobs=3)
    assert answer.logprobs is not None
    assert len(answer.logprobs[0].top) == 3
    assert all(logprob <= 0 for _, logprob in answer.logprobs[0].top)


def test_a_prompt_longer_than_a_slots_context_is_refused_in_the_servers_words(model: Model) -> None:
    with pytest.raises(RequestRefused, match=r"answered 400: .*exceed.*context size \(256 tokens\)"):
        model.ask("word " * 300)
    # Each of the slots has a context of its own.
    assert model.ask("word " * 150).usage.prompt_tokens > 150


def test_slots_answer_side_by_side(model: Model) -> None:
    assert model.backend.connections == 2

    async def main() -> list[Completion]:
        asks = [
            model.backend.complete(Request("m", (Message("user", str(number)),), {"max_tokens": 2}))
            for number in range(3)
        ]
        return list(await asyncio.gather(*asks))

    assert all(answer.usage.completion_tokens for answer in model.loop.submit(main()).result(120))


@pytest.mark.parametrize(
    "settings", ["slots=0", "slots=two", "context=-1", "threads=", "colour=red", "slots=1.5", "slots"]
)
def test_a_setting_that_makes_no_sense_is_told_with_those_there_are(settings: str) -> None:
    with pytest.raises(SettingsError, match="there are context, slots, threads, each a positive whole number"):
        LlamaCppBackend(f"smollm2?{settings}")


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(BackendUnavailable, match="no such file; write the path of a GGUF file, or local:smollm2"):
        LlamaCppBackend(str(tmp_path / "model.gguf")).check()


def test_a_library_that_the_system_lacks_is_named_with_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, once: Once
) -> None:
    (tmp_path / "xllamacpp.py").write_text('raise ImportError("libgomp.so.1: cannot open shared object file")')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)
    with pytest.raises(BackendUnavailable, match=r"llama\.cpp cannot be loaded: .*libgomp1"):
        once(LlamaCppBackend("smollm2"))


def test_a_file_that_is_no_model_is_said_to_be_none(tmp_path: Path, once: Once) -> None:
    file = tmp_path / "model.gguf"
    file.write_bytes(b"not a model" * 100)
    backend = LlamaCppBackend(str(file))
    backend.check()
    with pytest.raises(BackendUnavailable, match=r"llama\.cpp cannot load .*model\.gguf: "):
        once(backend)


def test_the_embedded_server_is_reached_past_every_proxy_and_gets_no_key(
    chat_server: ChatServer, monkeypatch: pytest.MonkeyPatch, once: Once
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, chat_server.url.removesuffix("/v1"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-key")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Secret: very-secret")
    embedded = LlamaCppBackend("smollm2?slots=1&context=512")
    assert once(embedded, "Hi", params={"max_tokens": 4}).text
    assert chat_server.bodies == []
    # What it is sent, as a server hears it.
    monkeypatch.delenv("http_proxy")
    watched = LlamaCppBackend("smollm2")
    monkeypatch.setattr(watched, "_start_server", lambda: chat_server.url)
    once(watched)
    assert len(chat_server.headers) == 1
    assert "secret" not in str(chat_server.headers)


def test_threads_are_told_to_sleep_while_they_wait_and_the_environment_stays_as_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    during: dict[str, str | None] = {}
    monkeypatch.setenv("GOMP_SPINCOUNT", "7")
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)

    def load(name: str) -> str:
        during.update({name: os.environ.get(name) for name in llama_cpp.PASSIVE_WAIT_VARIABLES})
        return name

    monkeypatch.setattr("importlib.import_module", load)
    assert llama_cpp._import_llama_cpp() == "xllamacpp"
    assert during == {"OMP_WAIT_POLICY": "PASSIVE", "GOMP_SPINCOUNT": "7"}, "what a user set is kept"
    assert os.environ["GOMP_SPINCOUNT"] == "7"
    assert "OMP_WAIT_POLICY" not in os.environ
