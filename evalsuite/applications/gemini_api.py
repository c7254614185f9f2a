"""Gemini's generateContent API at a case's endpoint; each request becomes one of the chat completions API.

Source: the Gemini API reference, "Generating content" and "Function calling".
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalsuite.applications import chat_api
from evalsuite.core.json_codec import dumps
from evalsuite.core.types import Completion, Message, ToolCall

PATH = re.compile(r"/models/(?P<model>[^:]+):(?P<method>generateContent|streamGenerateContent)")
SENT: Mapping[str, str] = {
    "frequencyPenalty": "frequency_penalty", "logprobs": "top_logprobs", "maxOutputTokens": "max_tokens",
    "presencePenalty": "presence_penalty", "responseLogprobs": "logprobs", "seed": "seed", "stopSequences": "stop",
    "temperature": "temperature", "topK": "top_k", "topP": "top_p",
}  # fmt: skip
"""Generation parameters, and their names in chat completions."""
# Accept labels and safety settings, but ignore their values, because these concern only Gemini's servers.
READ_FIELDS = frozenset(
    {"contents", "generationConfig", "labels", "safetySettings", "systemInstruction", "toolConfig", "tools"}
)
FORMAT = frozenset({"responseMimeType", "responseSchema", "responseJsonSchema", "thinkingConfig"})
MODES = {"AUTO": "auto", "ANY": "required", "NONE": "none"}
FINISH = {"length": "MAX_TOKENS", "content_filter": "SAFETY"}


@chat_api.refuse_malformed_request("Gemini's API")
def convert_request(body: Mapping[str, Any]) -> chat_api.ChatRequest:
    """Convert a request of the generateContent API; raise BadRequest if a field is malformed or not supported."""
    given = _to_camel_case(body)
    for name in sorted(given.keys() - READ_FIELDS):
        raise chat_api.make_field_error(name, given[name])
    contents = given.get("contents")
    if not isinstance(contents, list) or not contents:
        raise chat_api.BadRequest("contents: expected a list of at least one content")
    system = _convert_to_chat_parts(_to_camel_case(given.get("systemInstruction") or {}).get("parts", ()))
    messages = [Message("system", **chat_api.make_content_argument(system))] if system else []
    messages += _convert_contents(contents)
    declared = [_convert_to_openai_tools(_to_camel_case(tool)) for tool in given.get("tools") or ()]
    config = _to_camel_case(given.get("generationConfig") or {})
    params = _convert_to_chat_params(config)
    params |= _make_tool_choice_params(_to_camel_case(given.get("toolConfig") or {}))
    budget = _to_camel_case(config.get("thinkingConfig") or {}).get("thinkingBudget", -1)
    left_out = ("thinkingConfig.thinkingBudget",) if budget != -1 else ()
    offered = tuple(tool for tools in declared for tool in tools)
    return chat_api.ChatRequest(tuple(messages), offered, params, left_out)


def _to_camel_case(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that are not None, with names in camelCase, because clients may also send `snake_case`."""
    return {
        re.sub(r"_([a-z])", lambda found: found[1].upper(), name): value
        for name, value in mapping.items()
        if value is not None
    }


def _convert_contents(contents: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
    """Convert Gemini's contents to messages. A result without an id belongs to its function's first unanswered call."""
    open_calls: dict[str, list[str]] = defaultdict(list)
    for place, content in enumerate(contents):
        parts = [_to_camel_case(part) for part in content["parts"]]
        role = content.get("role") or "user"
        if role == "model":
            made = [_to_camel_case(part["functionCall"]) for part in parts if "functionCall" in part]
            calls = []
            for number, call in enumerate(made):
                name = call["name"]
                calls.append(ToolCall(call.get("id") or f"call_{place}_{number}", name, dumps(call.get("args") or {})))
                open_calls[name].append(calls[-1].id)
            text = _convert_to_chat_parts(part for part in parts if "functionCall" not in part)
            if not all(isinstance(part, str) for part in text):
                raise chat_api.BadRequest("contents: a model's content has text and function calls alone")
            yield Message("assistant", "".join(map(str, text)), tuple(calls))
            continue
        if role not in {"user", "function"}:
            raise chat_api.BadRequest(f"contents: the role {role!r:.80} is unknown; write user or model")
        for result in (_to_camel_case(part["functionResponse"]) for part in parts if "functionResponse" in part):
            waiting = open_calls[result["name"]]
            call_id = result.get("id") or (waiting[0] if waiting else result["name"])
            if call_id in waiting:
                waiting.remove(call_id)
            yield Message("tool", _format_function_result(result.get("response")), tool_call_id=call_id)
        rest = _convert_to_chat_parts(part for part in parts if "functionResponse" not in part)
        if rest:
            yield Message("user", **chat_api.make_content_argument(rest))


def _format_function_result(response: Any) -> str:
    """Write a function's result as text; unwrap a plain result that the client put in an object with one field."""
    match response:
        case {"result": value} | {"output": value} if len(response) == 1:
            return value if isinstance(value, str) else dumps(value)
        case _:
            return dumps(response)


def _convert_to_chat_parts(parts: Any) -> list[str | Mapping[str, Any]]:
    read: list[str | Mapping[str, Any]] = []
    for part in map(_to_camel_case, parts):
        # Skip a model's thoughts, because chat models do not accept thoughts as messages.
        if part.get("thought"):
            continue
        if "text" in part:
            read.append(str(part["text"]))
            continue
        data = _to_camel_case(part.get("inlineData") or part.get("fileData") or {})
        kind = str(data.get("mimeType"))
        if not kind.startswith("image/"):
            raise chat_api.BadRequest(f"contents: a part {', '.join(part)} ({kind:.80}) cannot be sent to a chat model")
        url = data["fileUri"] if "fileUri" in data else f"data:{kind};base64,{data['data']}"
        read.append({"type": "image_url", "image_url": {"url": url}})
    return read


def _convert_to_openai_tools(tool: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for name in sorted(tool.keys() - {"functionDeclarations"}):
        raise chat_api.BadRequest(f"tools: {name:.80} runs on Google's servers, which are not asked; offer functions")
    for declared in map(_to_camel_case, tool.get("functionDeclarations", ())):
        parameters = declared.get("parameters") or {"type": "OBJECT"}
        schema = declared.get("parametersJsonSchema") or _lower_type_names(parameters)
        function = {"name": declared["name"], "description": declared.get("description", ""), "parameters": schema}
        yield {"type": "function", "function": function}


def _lower_type_names(schema: Any) -> Any:
    """Convert a JSON schema from Gemini's variant, in which type names are in capitals."""
    written = _to_camel_case(schema)
    for name, value in written.items():
        if name == "type":
            written[name] = value.lower()
        elif name == "properties":
            written[name] = {field: _lower_type_names(inner) for field, inner in value.items()}
        elif name == "items":
            written[name] = _lower_type_names(value)
        elif name == "anyOf":
            written[name] = [_lower_type_names(inner) for inner in value]
    return written


def _convert_to_chat_params(generation_config: dict[str, Any]) -> dict[str, Any]:
    if generation_config.pop("candidateCount", 1) != 1:
        raise chat_api.BadRequest("candidateCount: a request has one answer; send it again for another one")
    for name in sorted(generation_config.keys() - SENT.keys() - FORMAT):
        raise chat_api.make_field_error(name, generation_config[name])
    params = {SENT[name]: value for name, value in generation_config.items() if name in SENT}
    schema = generation_config.get("responseJsonSchema") or generation_config.get("responseSchema")
    if schema:
        schema = schema if "responseJsonSchema" in generation_config else _lower_type_names(schema)
        params["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    elif generation_config.get("responseMimeType", "text/plain") == "application/json":
        params["response_format"] = {"type": "json_object"}
    elif generation_config.get("responseMimeType", "text/plain") != "text/plain":
        raise chat_api.make_field_error("responseMimeType", generation_config["responseMimeType"])
    thinking = _to_camel_case(generation_config.get("thinkingConfig") or {})
    if "thinkingLevel" in thinking:
        params["reasoning_effort"] = thinking["thinkingLevel"].lower()
    return params


def _make_tool_choice_params(tool_config: Mapping[str, Any]) -> dict[str, Any]:
    wanted = _to_camel_case(tool_config.get("functionCallingConfig") or {})
    if not wanted:
        return {}
    mode = wanted.get("mode", "AUTO")
    if mode not in MODES:
        raise chat_api.make_field_error("functionCallingConfig.mode", mode)
    if "allowedFunctionNames" not in wanted:
        return {"tool_choice": MODES[mode]}
    tools = [{"type": "function", "function": {"name": name}} for name in wanted["allowedFunctionNames"]]
    return {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": MODES[mode], "tools": tools}}}


def make_content_response(completion: Completion, model: str, number: int) -> dict[str, Any]:
    """Make the whole answer of the generateContent API; its id contains `number`, which counts the case's answers.

    Raises:
        BadRequest: the model called a function with arguments that are not a JSON object.
    """
    parts: list[dict[str, Any]] = [{"text": completion.text}] if completion.text else []
    parts += [
        {"functionCall": {"id": call.id, "name": call.name, "args": chat_api.parse_arguments_as_object(call)}}
        for call in completion.tool_calls
    ]
    usage = completion.usage
    return {
        "candidates": [
            {
                "content": {"role": "model", "parts": parts or [{"text": ""}]},
                "finishReason": FINISH.get(completion.finish_reason, "STOP"),
                "index": 0,
            }
        ],
        "usageMetadata": {
            "promptTokenCount": usage.prompt_tokens,
            "cachedContentTokenCount": usage.cached_tokens,
            # Subtract the reasoning, because Gemini's API counts the tokens of thoughts separately.
            "candidatesTokenCount": max(0, usage.completion_tokens - usage.reasoning_tokens),
            "thoughtsTokenCount": usage.reasoning_tokens,
            "totalTokenCount": usage.prompt_tokens + usage.completion_tokens,
        },
        "modelVersion": model,
        "responseId": f"gen_{number}",
    }


def make_content_chunks(response: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Make the chunks of a streamed answer; only the last chunk has a finish reason and the usage."""
    (candidate,) = response["candidates"]
    head = {name: response[name] for name in ("modelVersion", "responseId")}
    parts = [
        piece
        for part in candidate["content"]["parts"]
        for piece in (
            [{"text": text} for text in chat_api.split_into_words(part["text"])] if part.get("text") else [part]
        )
    ]
    for part in parts[:-1]:
        yield {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}], **head}
    yield {**response, "candidates": [{**candidate, "content": {"role": "model", "parts": parts[-1:]}}]}
