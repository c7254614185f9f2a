"""Calls an application that already runs as a service, by one HTTP request per question; answers may be streamed."""

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from evalsuite.applications.case_model import CaseModel
from evalsuite.core.errors import SettingsError, SolverError
from evalsuite.core.redaction import HIDDEN, redact
from evalsuite.core.types import Sample, Transcript

LARGEST_ANSWER = 64 * 2**20  # Maximum number of bytes in the answer of a service or a program.
LONGEST_ERROR = 2000  # Maximum characters of a failed request's answer in an error message.
PLACEHOLDER = re.compile(r"\{(input|messages|session|base_url|api_key)\}")
EFFECT = "request to the service"  # The journal (store of calls) records requests to the service under this name.
# Unlike `str.splitlines`, do not split at characters such as U+2028, which JSON may contain without escapes.
LINE_END = re.compile(r"\r\n|\r|\n")
_ERROR_EVENT = re.compile(r"^event: ?error[ \t]*\r?$", re.MULTILINE)
DEFAULT_REQUEST: Mapping[str, Any] = {"input": "{input}", "session": "{session}"}


@dataclass(slots=True)
class CaseExchange:
    """The state that all questions of one case to an application share."""

    sample: Sample
    model: CaseModel
    world: Any = None  # The object that a function gets as its parameter `world`; its final state is scored.
    # The case's id, which is also the id of its trace: 32 hexadecimal digits.
    session: str = field(default_factory=lambda: uuid4().hex)
    cookies: Any = None  # The `aiohttp.CookieJar` of the case.


@dataclass(frozen=True, slots=True)
class ServiceApplication:
    """A service under test, to which questions are sent by HTTP; made by `application`."""

    url: str
    answer: str
    timeout: float | None
    request: Mapping[str, Any] | Callable[[Any, str], Any] = field(default_factory=lambda: DEFAULT_REQUEST)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        try:
            parts = urlsplit(self.url)
            is_complete = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_complete = False
        if not is_complete:
            raise SettingsError(
                f"application(url={redact(self.url)!r}): give an address like http://127.0.0.1:8000/ask"
            )

    async def reply(self, question: str | list[dict[str, Any]], exchange: CaseExchange) -> Transcript:
        """Send one question; store its answer for a replay, unless the service itself calls evalsuite's endpoint."""
        messages = [{"role": "user", "content": question}] if isinstance(question, str) else question
        last = question if isinstance(question, str) else messages[-1].get("content", "")
        values = {"input": last, "messages": messages, "session": exchange.session}
        send = partial(self._send_question, question, exchange, values)
        templates = str([None if callable(self.request) else self.request, dict(self.headers)])
        if "{base_url}" in templates or "{api_key}" in templates:
            endpoint = exchange.model.endpoint()
            values |= {"base_url": endpoint.base_url, "api_key": endpoint.api_key}
            kept = await send()
        else:
            kept = await exchange.model.effects.run_tool_once(EFFECT, {"input": question}, send)
            exchange.session = kept["session"]
            kept["facts"]["session"] = exchange.session
        return Transcript(kept["answer"], facts=kept["facts"])

    async def _send_question(
        self, question: str | list[dict[str, Any]], exchange: CaseExchange, values: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the service's answer, its response's other fields, and the session's id."""
        import aiohttp

        if exchange.cookies is None:
            exchange.cookies = aiohttp.CookieJar(unsafe=True)  # Accept cookies from IP addresses, too.
        request = self.request
        try:
            body = request(question, exchange.session) if callable(request) else _fill_template(request, values)
            trace = f"00-{exchange.session}-{secrets.token_hex(8)}-01"
            headers = {"traceparent": trace, **_fill_template(self.headers, values)}
            timeout = aiohttp.ClientTimeout(self.timeout)
            async with (
                aiohttp.ClientSession(cookie_jar=exchange.cookies, timeout=timeout) as client,
                client.post(self.url, json=body, headers=headers, allow_redirects=False) as response,
            ):
                content = bytearray()
                async for chunk in response.content.iter_chunked(2**16):
                    content += chunk
                    if len(content) > LARGEST_ANSWER:
                        most = f"{LARGEST_ANSWER >> 20} MiB"
                        raise self._make_error(f"sent more than {most}; an answer may not be longer")
                status, kind, encoding = response.status, response.content_type, response.charset
        except TimeoutError as error:
            raise self._make_error(f"gave no answer within {self.timeout:g} s") from error
        except aiohttp.ClientPayloadError as error:
            raise self._make_error(f"broke off its answer ({self._conceal_headers(str(error))})") from error
        except (aiohttp.ClientError, OSError) as error:
            raise self._make_error(
                f"cannot be reached ({self._conceal_headers(str(error))}); is it running?"
            ) from error
        except (TypeError, ValueError) as error:
            raise self._make_error(f"cannot be sent this request: {self._conceal_headers(str(error))}") from error
        try:
            text = content.decode(encoding or "utf-8", "replace").removeprefix("\ufeff")
        except (LookupError, UnicodeError) as error:
            raise self._make_error(f"sent an answer in an unknown encoding: {encoding!r:.100}") from error
        if not 200 <= status < 300:
            words = self._conceal_headers(text.strip()[:LONGEST_ERROR]) or "(it says nothing)"
            raise self._make_error(f"answered with status {status}: {words}")
        answer, facts = self._find_answer(text, kind)
        return {"answer": answer, "facts": facts, "session": exchange.session}

    def _find_answer(self, text: str, content_type: str) -> tuple[str, dict[str, Any]]:
        """Find the answer in a response (JSON, a stream or plain text); also return the response's other fields."""
        if content_type == "text/event-stream":
            if failure := _ERROR_EVENT.search(text):
                words = self._conceal_headers(text[failure.start() :][:LONGEST_ERROR].strip())
                raise self._make_error(f"sent an error in its stream: {words}")
            events = list(_iterate_event_data(text))
        elif content_type.endswith("json"):
            events = LINE_END.split(text) if content_type == "application/x-ndjson" else [text]
        else:
            return text, {}
        pieces, facts = [], dict[str, Any]()
        for event in events:
            if not event.strip() or event == "[DONE]":
                continue
            try:
                value = json.loads(event)
            except (ValueError, RecursionError):
                if content_type != "text/event-stream":
                    raise self._make_error(f"sent what is not JSON: {self._conceal_headers(event[:200])!r}") from None
                value = event
            piece = value if isinstance(value, str) else _get_value_at_path(value, self.answer)
            pieces += [piece] if isinstance(piece, str) else []
            if isinstance(value, dict):
                facts |= {name: other for name, other in value.items() if name != self.answer.partition(".")[0]}
        if not pieces:
            raise self._make_error(
                f"sent no text in the field {self.answer!r}: {self._conceal_headers(text[:200])!r}; see answer="
            )
        return "".join(pieces), facts

    def _make_error(self, words: str) -> SolverError:
        """Make an error; its message is the service's address, followed by these words."""
        return SolverError(f"the service {redact(self.url)} {words}")

    def _conceal_headers(self, text: str) -> str:
        """Replace the values of the service's headers, and other secrets, in a text."""
        for value in filter(None, self.headers.values()):
            text = text.replace(value, HIDDEN)
        return redact(text)


def _fill_template(template: Any, values: Mapping[str, Any]) -> Any:
    """Replace the placeholders in a template, such as `{input}`, by values of the case."""
    if isinstance(template, Mapping):
        return {name: _fill_template(inner, values) for name, inner in template.items()}
    if isinstance(template, list | tuple):
        return [_fill_template(inner, values) for inner in template]
    if not isinstance(template, str):
        return template
    if whole := PLACEHOLDER.fullmatch(template):
        return values[whole[1]]
    return PLACEHOLDER.sub(lambda found: str(values[found[1]]), template)


def _iterate_event_data(text: str) -> Iterator[str]:
    """Yield the data of each server-sent event; if an event has several data lines, they are joined."""
    for event in re.split(r"\r?\n\r?\n", text):
        lines = [line.removeprefix("data:").removeprefix(" ") for line in LINE_END.split(event) if line[:5] == "data:"]
        if lines:
            yield "\n".join(lines)


def _get_value_at_path(value: Any, path: str) -> Any:
    """Follow a path such as `choices.0.message.content`; return None if it leads nowhere."""
    for name in path.split("."):
        if isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        elif isinstance(value, dict):
            value = value.get(name)
        else:
            return None
    return value
