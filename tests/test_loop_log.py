"""The debug log and the spans of the loop (AGENT.md B19)."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from streamparse.agent.debuglog import DebugLog
from streamparse.agent.models import Script
from streamparse.agent.spans import ToolSpans
from streamparse.errors import ConnectError, MissingExtraError
from streamparse.transport.wires import Wire
from tests.agents import calls, loop_of, played, says, tool
from tests.clocks import FakeClock

SECRET = "sk-1234"


def logged(turns: Any, **options: Any) -> list[dict[str, Any]]:
    lines: list[str] = []
    log = DebugLog(lines.append, clock=FakeClock(), **options)
    look = tool("look", lambda name: f"{name} and {SECRET}", name=None)
    played(loop_of(turns, [look], log=log), f"go {SECRET}")
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in lines)
    return [json.loads(line) for line in lines]


def test_b19_each_request_and_reply_is_written():
    records = logged([calls(("look", {"name": "a"}), ids=["x1"]), says("Done.")])
    assert [record["kind"] for record in records] == ["request", "reply", "result", "request", "reply", "end"]
    request, reply, result, second, last, end = records
    assert request["body"]["messages"] == [{"role": "user", "content": f"go {SECRET}"}]
    assert reply["calls"] == [{"id": "x1", "name": "look", "arguments": '{"name": "a"}', "error": None}]
    assert (result["id"], result["state"], result["text"]) == ("x1", "ok", f"a and {SECRET}")
    assert second["body"]["messages"][-1]["tool_call_id"] == "x1"
    assert (last["text"], last["finish_reason"], last["error"]) == ("Done.", "stop", None)
    assert (end["state"], end["turns"], end["calls"]) == ("answered", 2, 1)
    assert {record["at"] for record in records} == {1000.0}


def test_b19_broken_arguments_and_errors_are_in_the_log():
    records = logged([calls(("look", '{"name": ')), Script(content=says("x"), fault=ConnectError("no response"))])
    assert records[1]["calls"][0]["arguments"] == '{"name": '
    assert records[1]["calls"][0]["error"]
    assert records[-2]["error"] == "ConnectError: no response"


def test_b19_the_redaction_sees_every_text():
    records = logged(
        [calls(("look", {"name": SECRET})), says(SECRET)], redact=lambda text: text.replace(SECRET, "[redacted]")
    )
    assert SECRET not in json.dumps(records)
    assert json.dumps(records).count("[redacted]") >= 5


def test_b19_a_redaction_that_fails_writes_nothing():
    records = logged([says("x")], redact=lambda text: text[100])
    assert {record["not_written"] for record in records} == {"the redaction failed: IndexError"}
    assert SECRET not in json.dumps(records)


def test_b19_a_log_that_cannot_be_written_ends_no_run():
    def full(line):
        raise OSError(28, "No space left on device")

    log = DebugLog(full)
    ended, _ = played(loop_of([says("Hello.")], log=log))
    assert ended.text == "Hello."
    assert isinstance(log.error, OSError)


def test_b19_lone_surrogates_can_be_written():
    lines: list[str] = []
    look = tool("look", lambda name: "\ud83e", name=None)
    played(loop_of([calls(("look", '{"name": "a"}')), says("ok")], [look], log=DebugLog(lines.append)))
    assert [line.encode("utf-8") for line in lines]
    assert [json.loads(line) for line in lines]


# Spans


@pytest.fixture
def exported():
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("test"), exporter


def test_b19_spans(exported):
    tracer, exporter = exported

    def look(name):
        with tracer.start_as_current_span("inside"):
            if name == "bad":
                raise RuntimeError("ouch")
        return f"secret {name}"

    turn = calls(("look", {"name": "a"}), ("look", {"name": "bad"}), ("look", {"nme": "b"}), ids=["x", "y", "z"])
    played(loop_of([turn, says("ok")], [tool("look", look, name=None)], spans=ToolSpans(tracer)))
    spans = {span.attributes["gen_ai.tool.call.id"]: span for span in exporter.get_finished_spans() if span.attributes}
    assert spans.keys() == {"x", "y"}  # the third never ran
    assert {span.name for span in spans.values()} == {"execute_tool look"}
    assert dict(spans["x"].attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "x",
    }
    assert spans["y"].attributes["error.type"] == "error"
    assert not spans["y"].status.is_ok
    inside = [span.parent.span_id for span in exporter.get_finished_spans() if span.name == "inside"]
    assert sorted(inside) == sorted(span.context.span_id for span in spans.values())


def test_b19_content_is_recorded_on_request_only(exported):
    tracer, exporter = exported
    look = tool("look", lambda name: "the result", name=None)
    played(loop_of([calls(("look", {"name": "a"})), says("ok")], [look], spans=ToolSpans(tracer, content=True)))
    (span,) = exporter.get_finished_spans()
    assert span.attributes["gen_ai.tool.call.arguments"] == '{"name": "a"}'
    assert span.attributes["gen_ai.tool.call.result"] == "the result"


def test_b19_spans_need_their_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingExtraError, match="otel"):
        ToolSpans()


def test_b19_the_redaction_sees_keys_too():
    arguments = {"name": {SECRET: 1, f"{SECRET}!": 2}, SECRET: 3}
    shape = tool("shape", lambda name: "ok", name={"type": "object"})
    lines: list[str] = []
    log = DebugLog(lines.append, redact=lambda text: "[x]" if SECRET in text else text, clock=FakeClock())
    played(
        loop_of([calls(("shape", arguments)), says("Done.")], [shape], log=log, scripted={"wire": Wire.MESSAGES}),
    )
    assert SECRET not in "".join(lines)
    sent = json.loads(lines[3])["body"]["messages"][1]["content"][0]["input"]
    assert sent == {"name": {"[x]": 1, "[x]#2": 2}, "[x]": 3}  # nothing is lost where keys become equal
