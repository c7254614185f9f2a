from __future__ import annotations

from evalsuite.applications.call_log import CallLog, LoggedCall
from evalsuite.core.types import Completion, Message, ToolCall, Transcript

ASK = Message("user", "Oslo?")


def logged(messages: tuple[Message, ...], text: str = "", *calls: ToolCall) -> LoggedCall:
    return LoggedCall("m", messages, Completion(text, tool_calls=calls), 0.5)


def test_calls_that_go_on_are_one_conversation() -> None:
    first = logged((ASK,), "Which?")
    again = (ASK, Message("assistant", "Which? "), Message("user", "The city."))
    transcript = CallLog([first, logged(again, "Norway")]).make_transcript()
    assert [message.content for message in transcript.messages] == ["Oslo?", "Which?", "The city.", "Norway"]
    assert transcript.answer == "Norway"


def test_calls_about_other_things_are_conversations_of_their_own() -> None:
    other = Message("user", "Rome?")
    transcript = CallLog([logged((ASK,), "Norway"), logged((other,), "Italy")]).make_transcript()
    assert [message.content for message in transcript.messages] == ["Oslo?", "Norway", "Rome?", "Italy"]


def test_each_call_has_its_own_observation_even_where_ids_repeat() -> None:
    log = CallLog()
    messages: tuple[Message, ...] = (ASK,)
    for answer in ("sunny", "cold"):
        call = ToolCall("same", "look", '{"at": "sky"}')
        log.calls.append(logged(messages, "", call))
        said = Message("assistant", "", (call,))
        messages = (*messages, said, Message("tool", answer, tool_call_id="same"))
    log.calls.append(logged(messages, "done"))
    events = log.make_transcript().events
    assert [event["kind"] for event in events] == ["turn", "call", "turn", "call", "turn"]
    assert [event["observation"] for event in events if event["kind"] == "call"] == ["sunny", "cold"]


def test_an_observation_is_found_after_the_system_prompt_has_changed() -> None:
    call = ToolCall("c1", "look", "{}")
    later = (
        Message("system", "It is 12:01."),
        ASK,
        Message("assistant", "", (call,)),
        Message("tool", "sunny", tool_call_id="c1"),
    )
    log = CallLog([logged((Message("system", "It is 12:00."), ASK), "", call), logged(later, "done")])
    (event,) = [event for event in log.make_transcript().events if event["kind"] == "call"]
    assert event["observation"] == "sunny"


def test_a_handoff_keeps_its_observation() -> None:
    call = ToolCall("h1", "transfer_to_billing", "{}")
    later = (
        Message("system", "You are billing."),
        Message("user", "Summary: Oslo?"),
        Message("tool", "transferred", tool_call_id="h1"),
    )
    log = CallLog([logged((Message("system", "You triage."), ASK), "", call), logged(later, "done")])
    (event,) = [event for event in log.make_transcript().events if event["kind"] == "call"]
    assert event["observation"] == "transferred"


def test_an_id_that_each_turn_uses_again_takes_the_observations_in_their_order() -> None:
    calls = []
    for clock, tool, seen in (("12:00", "look", []), ("12:01", "touch", ["sunny"]), ("12:02", "", ["warm"])):
        answers = [Message("tool", text, tool_call_id="same") for text in seen]
        made = (ToolCall("same", tool, "{}"),) if tool else ()
        calls.append(logged((Message("system", clock), ASK, *answers), "", *made))
    events = CallLog(calls).make_transcript().events
    assert [event["observation"] for event in events if event["kind"] == "call"] == ["sunny", "warm"]


def test_arguments_that_cannot_be_read_are_a_fault() -> None:
    log = CallLog([logged((ASK,), "", ToolCall("1", "look", "[oops"))])
    (_, event) = log.make_transcript().events
    assert (event["arguments"], event["faults"]) == ({}, ["unparseable"])


def test_a_transcript_that_tells_its_own_story_is_left_alone() -> None:
    own = Transcript("x", messages=(Message("user", "mine"),))
    assert CallLog([logged((ASK,), "Norway")]).complete_transcript(own) is own


def test_a_reply_that_is_sent_again_as_text_continues_its_own_conversation() -> None:
    calls = [ToolCall(f"c{number}", "look", "{}") for number in range(3)]
    first, second = logged((ASK,), "I look.", *calls[:2]), logged((ASK,), "I look, too.", calls[2])
    again = Message("assistant", "I look, too.\nCalling tools: c2")
    told = Message("user", "Observation:\nsunny")
    both = Message("assistant", "I look.\nCalling tools: c0, c1")
    third = logged((ASK, again, told), "Sunny.")
    fourth = logged((ASK, both, Message("user", "Observation:\nwarm\ncold")), "Both.")
    transcript = CallLog([first, second, third, fourth]).make_transcript()
    texts = [message.content for message in transcript.messages]
    assert texts[:4] == ["Oslo?", "I look.", "Observation:\nwarm\ncold", "Both."]
    assert texts[4:] == ["Oslo?", "I look, too.", "Observation:\nsunny", "Sunny."]
    events = [event for event in transcript.events if event["kind"] == "call"]
    assert [event["observation"] for event in events] == ["warm\ncold", "warm\ncold", "sunny"]


def test_another_assistants_message_begins_another_conversation() -> None:
    other = (ASK, Message("assistant", "Ask the clerk."), Message("user", "Well?"))
    transcript = CallLog([logged((ASK,), "Norway"), logged((ASK,), ""), logged(other, "Yes.")]).make_transcript()
    assert [message.content for message in transcript.messages][-4:] == ["Oslo?", "Ask the clerk.", "Well?", "Yes."]


def test_arguments_that_are_nested_too_deep_are_unparseable() -> None:
    log = CallLog([logged((ASK,), "", ToolCall("c1", "look", "[" * 200_000))])
    (event,) = [event for event in log.make_transcript().events if event["kind"] == "call"]
    assert (event["arguments"], event["faults"]) == ({}, ["unparseable"])
