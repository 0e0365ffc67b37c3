"""One answer on three wires gives the same events: whoever consumes them need not know the wire.

An answer (reasoning, text, calls) is written as the text of a model, as OpenAI-style chunks and as Anthropic-style
events, in every way that the library or this module can write it. The lists of events are compared whole, as their JSON
(so that ``1``, ``1.0`` and ``true`` differ), after adjacent pieces of one text have been joined (``tests.chunks``).
What may differ, and is left out by ``shape``:

* ``verbatim``: the layout of the JSON text of the arguments. It is the wire's, or none.
* ``Deviated``, ``deviations`` and ``trusted``: native text can be doubtful where JSON cannot (a value that quotes
  a tag, a parameter that nobody declared). On the two wires that carry JSON there are none, which is checked.
* The events inside a value, and the characters of a string, where the schema leaves the type open (several types, an
  ``enum`` without a type, no schema). Native text then shows such a value when it is complete, since until then nobody
  knows whether ``[1`` is a list or a string. The value itself, at its top-level path, is compared.
* ``finish_reason``: each wire has its own words. ``clean`` is compared.
* If text follows a call: chunks seal a call when the next one starts, or at the finish, and not where the text starts
  (C5). So the order between calls and text is the chunks' own. Each call's own events, the text, the reasoning and the
  order of the calls are compared.

Nothing else differs: not the ids, where they are given; not the place of any event among the others.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from hypothesis import given, reject
from hypothesis import strategies as st

from streamparse import (
    ArgumentDelta,
    ArgumentValue,
    ChunkEncoder,
    Deviated,
    Ended,
    Event,
    Reasoning,
    Text,
    ToolCall,
    ToolCallFinished,
    UsageError,
    render_answer,
    to_chat_completion,
)
from streamparse.decoding.chat import ChatDecoder
from streamparse.decoding.messages import MessagesDecoder
from streamparse.decoding.native import default_id
from streamparse.events import dumps
from tests.chunks import join
from tests.documents import M2, Call, Document, documents
from tests.test_chat import shuffled

Said = list[tuple[str, str] | Call]
Tools = list[dict[str, Any]]
Payloads = list[dict[str, Any]]


# The wires ------------------------------------------------------------------------------------------------------------


def written(arguments: dict[str, Any], generator: random.Random) -> str:
    """JSON in one of its layouts."""
    separators = generator.choice([(",", ":"), (", ", ": "), ("\n, ", " :\t")])
    return json.dumps(arguments, ensure_ascii=generator.random() < 0.5, separators=separators)


def as_chunks(said: Said, generator: random.Random) -> Payloads:
    """OpenAI-style chunks, each text and each JSON text in pieces."""
    deltas: Payloads = []
    calls = 0
    for item in said:
        if isinstance(item, Call):
            function: dict[str, Any] = {"name": item.name, "arguments": ""}
            deltas.append({"tool_calls": [{"index": calls, "id": default_id(calls), "function": function}]})
            for piece in shuffled(written(item.arguments, generator), generator):
                deltas.append({"tool_calls": [{"index": calls, "function": {"arguments": piece}}]})
            calls += 1
        else:
            field = "reasoning_content" if item[0] == "reasoning" else "content"
            deltas += [{field: piece} for piece in shuffled(item[1], generator)]
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}]}
    return [*({"choices": [{"index": 0, "delta": delta}]} for delta in deltas), last]


def block_of(item: tuple[str, str] | Call, number: int) -> dict[str, Any]:
    """A whole content block."""
    if isinstance(item, Call):
        return {"type": "tool_use", "id": default_id(number), "name": item.name, "input": item.arguments}
    kind = "thinking" if item[0] == "reasoning" else "text"
    return {"type": kind, kind: item[1]}


def numbered(said: Said) -> Iterator[tuple[int, tuple[str, str] | Call, dict[str, Any]]]:
    calls = 0
    for index, item in enumerate(said):
        yield index, item, block_of(item, calls)
        calls += isinstance(item, Call)


def deltas_of(item: tuple[str, str] | Call, kind: str, generator: random.Random) -> Payloads:
    if isinstance(item, Call):
        pieces = ["", *shuffled(written(item.arguments, generator), generator)]
        return [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return [{"type": f"{kind}_delta", kind: piece} for piece in shuffled(item[1], generator)]


def as_events(said: Said, generator: random.Random) -> Payloads:
    """Anthropic-style events, each text and each JSON text in pieces."""
    events: Payloads = [{"type": "message_start", "message": {"content": [], "model": "m"}}]
    for index, item, block in numbered(said):
        kind = block["type"]
        empty = {**block, "input": {}} if isinstance(item, Call) else {"type": kind, kind: ""}
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        for delta in deltas_of(item, kind, generator):
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    return [*events, {"type": "message_delta", "delta": {"stop_reason": stop_reason(said)}}, {"type": "message_stop"}]


def as_message(said: Said) -> dict[str, Any]:
    """A whole Anthropic-style message."""
    content = [block for _, _, block in numbered(said)]
    return {"type": "message", "model": "m", "content": content, "stop_reason": stop_reason(said)}


def stop_reason(said: Said) -> str:
    return "tool_use" if any(isinstance(item, Call) for item in said) else "end_turn"


def decode(decoder: ChatDecoder | MessagesDecoder, payloads: Payloads, generator: random.Random) -> list[Event]:
    """Payloads as dicts or as JSON text."""
    form: Any = generator.choice([json.dumps, lambda payload: payload])
    events = [event for payload in payloads for event in decoder.feed(form(payload))]
    return events + decoder.close()


# What is compared -----------------------------------------------------------------------------------------------------


def is_open(tools: Tools, name: str, key: str) -> bool:
    """Whether the schema of a parameter leaves its type open."""
    schemas = {tool["function"]["name"]: tool["function"]["parameters"]["properties"] for tool in tools}
    return not isinstance(schemas[name].get(key, {}).get("type"), str)


def shape(events: list[Event], tools: Tools) -> list[Event]:
    names: dict[int, str] = {}
    kept: list[Event] = []
    for event in events:
        if isinstance(event, ArgumentDelta | ArgumentValue):
            inside = isinstance(event, ArgumentDelta) or len(event.path) > 1
            if inside and is_open(tools, names[event.index], str(event.path[0])):
                continue
        if isinstance(event, ToolCallFinished):
            assert json.loads(event.call.arguments_json) == event.call.arguments
            event = ToolCallFinished(event.index, ToolCall(event.call.id, event.call.name, event.call.arguments))
        elif isinstance(event, Ended):
            event = Ended(None, None, event.clean)
        elif not isinstance(event, Text | Reasoning | Deviated | ArgumentDelta | ArgumentValue):
            names[event.index] = event.name  # type: ignore[union-attr]  # a start; a failure has no name, and fails
        if not isinstance(event, Deviated):
            kept.append(event)
    return join(kept)


def lines(events: list[Event]) -> list[str]:
    return [dumps(event) for event in events]


def roads(events: list[Event]) -> dict[Any, list[str]]:
    """The events apart: of each call, the text, the reasoning, the order of the calls."""
    apart: dict[Any, list[Event]] = {"started": [], "end": [events[-1]]}
    for event in events[:-1]:
        key = getattr(event, "index", type(event))
        apart.setdefault(key, []).append(event)
        if type(event).__name__ == "ToolCallStarted":
            apart["started"].append(event)
    return {key: lines(join(found)) for key, found in apart.items()}


def no_deviations(events: list[Event]) -> None:
    assert not [event for event in events if isinstance(event, Deviated)]
    assert all(event.call.trusted for event in events if isinstance(event, ToolCallFinished))


def first(document: Document, kind: str) -> str:
    """The first text of a kind that the document says."""
    return next((item[1] for item in document.said if not isinstance(item, Call) and item[0] == kind), "")


END: dict[type, dict[str, Any]] = {
    ChatDecoder: {"choices": [{"finish_reason": "stop"}]},
    MessagesDecoder: {"type": "message_stop"},
}


def in_payload(carrier: type, text: str) -> dict[str, Any]:
    if carrier is ChatDecoder:
        return {"choices": [{"delta": {"content": text}}]}
    return {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}


# The property ---------------------------------------------------------------------------------------------------------


@given(documents(M2, with_tools=True), st.randoms(use_true_random=False))
def test_the_same_answer(document: Document, generator: random.Random) -> None:
    """Reasoning, then text, then calls: the order that every wire can write."""
    tools = document.tools or []
    reasoning, text = (first(document, kind) for kind in ("reasoning", "text"))
    calls = [(call.name, call.arguments) for call in document.calls]
    try:
        answer = render_answer(reasoning=reasoning or None, text=text, calls=calls, tools=tools)
    except UsageError:  # a value that native text cannot carry
        reject()
    said: Said = [item for item in (("reasoning", reasoning), ("text", text)) if item[1]]
    said += document.calls
    native = Document(M2, "text", tools, ()).run(shuffled(answer, generator))
    wanted = lines(shape(native, tools))
    on_chunks = {
        "chunks": as_chunks(said, generator),
        "ChunkEncoder": ChunkEncoder().feed_all(native),
        "to_chat_completion": [to_chat_completion(native)],
    }
    on_events = {"events": as_events(said, generator), "a message": [as_message(said)]}
    for road, payloads in {**on_chunks, **on_events}.items():
        decoder = ChatDecoder(dialect=None) if road in on_chunks else MessagesDecoder(dialect=None)
        found = decode(decoder, payloads, generator)
        no_deviations(found)
        assert lines(shape(found, tools)) == wanted, road
    for carrier in (ChatDecoder, MessagesDecoder):  # the text itself, inside the payloads of another wire (C9)
        pieces = [in_payload(carrier, piece) for piece in shuffled(answer, generator)]
        found = decode(carrier(tools=tools, dialect="minimax_m2"), [*pieces, END[carrier]], generator)
        assert lines(join(found)[:-1]) == lines(join(native)[:-1])


@given(documents(M2, with_tools=True), st.randoms(use_true_random=False))
def test_text_between_calls_and_behind_them(document: Document, generator: random.Random) -> None:
    """Any order: events keep it, chunks keep each call, the text, and the order of the calls."""
    tools, said = document.tools or [], list(document.said)
    native = shape(document.decode(), tools)
    events = decode(MessagesDecoder(dialect=None), as_events(said, generator), generator)
    no_deviations(events)
    assert lines(shape(events, tools)) == lines(native)
    chunks = decode(ChatDecoder(dialect=None), as_chunks(said, generator), generator)
    no_deviations(chunks)
    assert roads(shape(chunks, tools)) == roads(native)


def test_a_large_file() -> None:
    """A hundred thousand characters with everything that a file may hold, on all wires."""
    generator = random.Random(0)
    line = 'if a < b && c > "d": print(\'ü 🎈 搜索 \\n \\u0041\')\t# {"x": [1]}\r\n'
    schema = {"type": "object", "properties": {"text": {"type": "string"}, "rows": {"type": "array"}}}
    tools = [{"type": "function", "function": {"name": "write", "parameters": schema}}]
    rows = [{"n": number, "half": number / 2, "big": 10**20 + number, "none": None} for number in range(500)]
    arguments = {"text": line * 1600, "rows": rows}
    said: Said = [("reasoning", "why"), ("text", "Sure."), Call("write", arguments)]
    answer = render_answer(reasoning="why", text="Sure.", calls=[("write", arguments)], tools=tools)
    native = lines(shape(Document(M2, "text", tools, ()).run(shuffled(answer, generator)), tools))
    for decoder, payloads in (
        (ChatDecoder(), as_chunks(said, generator)),
        (MessagesDecoder(), as_events(said, generator)),
        (MessagesDecoder(), [as_message(said)]),
    ):
        assert lines(shape(decode(decoder, payloads, generator), tools)) == native
