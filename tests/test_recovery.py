"""The recovery check, row by row of its requirements (A1 to A14), and scripted models as conversations."""

from __future__ import annotations

import copy
import json
from typing import Any, NamedTuple

import msgspec
import pytest

from streamparse import Ended, Level, NativeDecoder, ToolCall, ToolCallFinished
from streamparse.agent.models import HttpModel, RecordedModel, ScriptedModel
from streamparse.agent.preflight import preflight
from streamparse.agent.recovery import (
    STATEMENT,
    AnswerRule,
    Conditions,
    End,
    RecoveryCase,
    RecoveryCheck,
    SchemaChanged,
    TurnClass,
    bundled,
    case_of,
    case_text,
    generate,
    measure,
    run_case_sync,
    stock_case,
)
from streamparse.agent.recovery.drive import report_of
from streamparse.errors import UsageError
from streamparse.events import Event
from streamparse.server import Server
from streamparse.tools.observation import SIZE
from streamparse.transport.recording import Header, Piece, write
from streamparse.transport.wires import Wire
from tests.clocks import run
from tests.conversations import Turn, chunks, native, on_wire, turns_of

STOCK = stock_case()
WIRES = [Wire.TEXT, Wire.CHAT, Wire.MESSAGES]

KELVIN = 'calls get_weather {"location": "Bern, Switzerland", "unit": "kelvin"}'
CELSIUS = 'calls get_weather {"location": "Bern, Switzerland", "unit": "celsius"}'
ANSWER = "says It is 17.5 degrees celsius in Bern."


class Talk(NamedTuple):
    """A conversation, the class of each of its turns, and its end."""

    script: str
    classes: str
    end: End | None = None


TALKS = {
    "recovered at once": Talk(
        f"""
        thinks Kelvin is not allowed, celsius is.
        {CELSIUS}
        -
        {ANSWER}
        """,
        "fixed used",
        End.RECOVERED,
    ),
    "recovered at the second try": Talk(
        f"""
        {KELVIN}
        -
        thinks The same error. I have to change the unit.
        {CELSIUS}
        -
        {ANSWER}
        """,
        "repeat_identical fixed used",
        End.RECOVERED,
    ),
    "kelvin for ever": Talk(
        f"{KELVIN}\n-\n{KELVIN}\n-\n{KELVIN}", "repeat_identical repeat_identical repeat_identical", End.LIMIT
    ),
    "kelvin again in another envelope": Talk(
        """
        says I try it in another format.
        says <tool_call>{"name": "get_weather",
        says "arguments": {"unit": "kelvin", "location": "Bern, Switzerland"}}</tool_call>
        """,
        "prose_call",
    ),
    "kelvin in prose": Talk("says I will call get_weather with the unit kelvin for Bern.", "prose_call"),
    "kelvin as code": Talk(
        "says get_weather(location='Bern, Switzerland', unit=\"kelvin\")",
        "prose_call",
    ),
    "celsius with another city": Talk(
        'calls get_weather {"location": "Basel, Switzerland", "unit": "celsius"}', "drifted"
    ),
    "fahrenheit": Talk(
        'calls get_weather {"location": "Bern, Switzerland", "unit": "fahrenheit"}', "repeat_same_field"
    ),
    "rankine": Talk('calls get_weather {"location": "Bern, Switzerland", "unit": "rankine"}', "repeat_same_field"),
    "the unit is right, and the place is gone": Talk('calls get_weather {"unit": "celsius"}', "new_error"),
    "a tool that does not exist": Talk('calls convert_unit {"from": "kelvin", "to": "celsius"}', "invented_tool"),
    "another declared tool": Talk('calls get_time {"location": "Bern"}', "foreign_tool"),
    "only reasoning": Talk("thinks Kelvin is wrong. What now?", "unfinished"),
    "cut by length": Talk(f"{CELSIUS}\ncut", "unfinished"),
    "cut in the text": Talk("says Let me\ncut", "unfinished"),
    "gives up": Talk("says I am afraid that I cannot look that up.", "missing"),
    "right, and one call too many": Talk(
        f'{CELSIUS}\ncalls convert_unit {{"from": "kelvin", "to": "celsius"}}', "invented_tool"
    ),
    "right beside a wrong one, and then alone": Talk(
        f'{CELSIUS}\ncalls convert_unit {{"from": "kelvin"}}\n-\n{CELSIUS}\n-\n{ANSWER}',
        "invented_tool fixed used",
        End.RECOVERED,
    ),
    "an answer that ignores the result": Talk(f"{CELSIUS}\n-\nsays I looked it up for you.", "fixed ignored"),
    "an answer that contradicts the result": Talk(f"{CELSIUS}\n-\nsays It is 21 degrees in Bern.", "fixed contradicts"),
    "no answer": Talk(f"{CELSIUS}\n-\nthinks So that is the weather.", "fixed missing"),
    "the call once more in place of an answer": Talk(f"{CELSIUS}\n-\n{CELSIUS}", "fixed missing"),
    "ignores, and is told": Talk(
        f"{CELSIUS}\n-\nsays I looked it up.\n-\n{ANSWER}", "fixed ignored used", End.RECOVERED
    ),
    "a cycle of two wrong values": Talk(
        f"""
        calls get_weather {{"location": "Bern, Switzerland", "unit": "rankine"}}
        -
        {KELVIN}
        """,
        "repeat_same_field repeat_identical",
        End.CYCLE,
    ),
}


def finish_of(turn: Any) -> str | None:
    return "length" if turn.cut else None


def talk(script: str, wire: Wire = Wire.CHAT, case: RecoveryCase = STOCK, **options: Any) -> RecoveryCheck:
    """The check after these turns."""
    check = RecoveryCheck(case, **options)
    for turn in turns_of(script):
        check.request(wire, model="m")
        check.read(on_wire(turn, wire), finish_reason=finish_of(turn))
    return check


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("name", TALKS)
def test_a9_each_turn_has_its_class(name, wire):
    check = talk(TALKS[name].script, wire)
    assert " ".join(turn.turn_class for turn in check.turns) == TALKS[name].classes
    assert check.end is TALKS[name].end


def test_every_class_is_in_a_conversation():
    shown = {word for each in TALKS.values() for word in each.classes.split()}
    assert set(TurnClass) - shown == {TurnClass.MALFORMED}  # what is malformed differs from wire to wire


MALFORMED = {
    "broken JSON": chunks(turns_of('calls get_weather {"location" "Bern"}')[0]),
    "text in the envelope": "<minimax:tool_call>\nget_weather please\n</minimax:tool_call>",
    "a parameter twice": native(turns_of(CELSIUS)[0]).replace(
        "</invoke>", '<parameter name="unit">kelvin</parameter>\n</invoke>'
    ),
    "not an object": chunks(turns_of("calls get_weather [1]")[0]),
}


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
def test_a9_malformed(content):
    check = RecoveryCheck(STOCK)
    turn = check.read(content)
    assert (turn.turn_class, turn.read) == (TurnClass.MALFORMED, False)
    assert turn.level in (Level.PARSE, Level.REPRESENTATION)
    assert turn.misread


def test_a1_three_verdicts():
    """Parsed, valid, corrected: each can be no while the one before it is yes."""

    def verdicts(script: str) -> tuple[Any, ...]:
        turn = talk(script).turns[0]
        return turn.read, turn.valid, turn.corrected

    assert verdicts(f"{CELSIUS}\ncut") == (False, None, None)
    assert verdicts(KELVIN) == (True, False, False)
    assert verdicts(TALKS["fahrenheit"].script) == (True, True, False)
    assert verdicts(TALKS["celsius with another city"].script) == (True, True, False)
    assert verdicts(CELSIUS) == (True, True, True)


@pytest.mark.parametrize(
    "content",
    [
        chunks(turns_of(KELVIN)[0]),
        native(turns_of(KELVIN)[0]),
        chunks(turns_of('calls get_weather { "unit":"kelvin",\\n"location": "Bern, Switzerland" }')[0]),
        [
            {
                "model": "MiniMax-M2",
                "choices": [{"delta": {"content": native(turns_of(KELVIN)[0])}, "finish_reason": "stop"}],
            }
        ],
    ],
    ids=["chunks", "native", "other keys and spaces", "native within chunks"],
)
def test_a2_the_same_call_in_another_envelope_is_a_repetition(content):
    turn = RecoveryCheck(STOCK).read(content)
    assert (turn.turn_class, turn.repeats, turn.corrected) == (TurnClass.REPEAT_IDENTICAL, True, False)


@pytest.mark.parametrize("name", ["kelvin again in another envelope", "kelvin in prose", "kelvin as code"])
def test_a2_a_call_in_prose_is_a_repetition_too(name):
    turn = talk(TALKS[name].script).turns[0]
    assert turn.repeats
    assert turn.corrected is None


def test_a2_a_call_in_the_reasoning_is_a_repetition_too():
    """N13: it is not executed there; where a right call follows, that one counts."""
    kelvin, celsius = native(turns_of(KELVIN)[0]), native(turns_of(CELSIUS)[0])
    turn = RecoveryCheck(STOCK).read(f"<think>\nPerhaps\n{kelvin}\n</think>\n\n")
    assert (turn.turn_class, turn.repeats) == (TurnClass.PROSE_CALL, True)
    turn = RecoveryCheck(STOCK).read(f"<think>\nPerhaps\n{kelvin}\n</think>\n\n{celsius}")
    assert (turn.turn_class, turn.repeats, turn.read, turn.corrected) == (TurnClass.FIXED, False, True, True)


def test_a2_the_same_cut_is_a_repetition_too():
    [case] = [case for case in bundled() if case.name == "02_web_search_unclosed_json"]
    turn = RecoveryCheck(case).read(chunks(Turn("", "", [(case.tool, case.prepared.arguments_text)], False)))
    assert (turn.turn_class, turn.repeats) == (TurnClass.UNFINISHED, True)


def test_a2_a_right_call_in_prose_is_no_repetition_and_no_success():
    turn = talk("says I will call get_weather with the unit celsius.").turns[0]
    assert (turn.turn_class, turn.repeats) == (TurnClass.PROSE_CALL, False)


def test_a3_the_stock_case():
    check = RecoveryCheck(STOCK)
    report = check.report()
    assert "celsius" in STOCK.user
    assert STOCK.prepared.arguments == {"location": "Bern, Switzerland", "unit": "kelvin"}
    assert report.prepared.origin == "prepared"
    [call] = report.prepared.calls
    assert call.id == "prepared_0"
    assert '"celsius" or "fahrenheit"' in call.observation
    assert check.request(model="m")["messages"][0]["role"] == "user"
    assert STOCK.tools[0]["annotations"] == {"readOnlyHint": True}


def test_a4_what_a_correction_is():
    """Same tool, the place kept, the unit that the user asked for; a fitting call is not enough."""
    assert talk(CELSIUS).turns[0].turn_class is TurnClass.FIXED
    for name in ("fahrenheit", "celsius with another city", "another declared tool", "a tool that does not exist"):
        assert talk(TALKS[name].script).turns[0].turn_class is not TurnClass.FIXED


def test_a5_five_levels_told_apart():
    prepared = {case.kind: RecoveryCheck(case).report().prepared.level for case in bundled()}
    assert prepared["truncated_parameter"] == prepared["truncated_envelope"] == Level.PARSE
    assert prepared["array_for_string"] == prepared["unclosed_json"] == Level.REPRESENTATION
    assert prepared["enum"] == Level.SCHEMA
    assert prepared["refused"] == Level.TOOL
    assert talk(KELVIN).turns[0].level == Level.RECOVERY
    assert talk(CELSIUS).turns[0].level is None


def results(check: RecoveryCheck, wire: Wire = Wire.CHAT) -> list[dict[str, Any]]:
    return [each for each in check.request(wire, model="m")["messages"] if each["role"] == "tool"]


def test_a6_the_error_is_the_result_of_the_very_call():
    check = RecoveryCheck(STOCK)
    check.read(chunks(turns_of(KELVIN)[0]))
    first, second = results(check)
    assert (first["tool_call_id"], second["tool_call_id"]) == ("prepared_0", "call_get_weather_0")
    for text in (first["content"], second["content"]):
        assert "unit" in text
        assert '"kelvin"' in text
        assert '"celsius" or "fahrenheit"' in text
        assert "Keep as they are: location" in text
        assert "Nothing was executed" in text
    assert "attempt 1 of 4" in first["content"]
    assert "attempt 2 of 4" in second["content"]
    assert "the same call as before" not in first["content"]
    assert "the same call as before" in second["content"]
    check.read(chunks(turns_of(KELVIN)[0]))
    assert "came 3 times" in results(check)[-1]["content"]


@pytest.mark.parametrize("name", TALKS)
def test_a6_everything_that_goes_back_is_bounded(name):
    check = talk(TALKS[name].script)
    texts = [call.observation for turn in check.turns for call in turn.calls] + [turn.feedback for turn in check.turns]
    assert all(len(text) <= SIZE for text in texts)
    last = check.turns[-1]
    assert check.is_over or last.calls or last.feedback, "the model is told nothing"


def test_a6_the_last_attempt_is_called_the_last():
    check = talk(TALKS["kelvin for ever"].script)
    assert "attempt 4 of 4" in check.turns[-1].calls[0].observation
    assert "the last attempt" in check.turns[-1].calls[0].observation


def test_a6_a_foreign_call_is_told_what_is_due():
    text = talk(TALKS["another declared tool"].script).turns[0].calls[0].observation
    assert '"get_time" was not executed' in text
    assert '"celsius" or "fahrenheit"' in text


def test_a6_a_long_value_is_clipped_and_not_dropped():
    long = json.dumps("k" * 50_000)
    text = talk(f'calls get_weather {{"location": "Bern, Switzerland", "unit": {long}}}').turns[0].calls[0].observation
    assert len(text) <= SIZE
    assert '"kkkkkkkk' in text


def widened(case: RecoveryCase) -> list[dict[str, Any]]:
    tools = copy.deepcopy(list(case.tools))
    tools[0]["parameters"]["properties"]["unit"]["enum"].append("kelvin")
    return tools


def test_a7_a_schema_widened_in_the_middle_raises():
    case = stock_case()
    check = RecoveryCheck(case)
    case.tools[0]["parameters"]["properties"]["unit"]["enum"].append("kelvin")
    with pytest.raises(SchemaChanged, match="the tools have changed"):
        check.request(model="m")
    with pytest.raises(SchemaChanged):
        check.read(chunks(turns_of(KELVIN)[0]))
    assert check.turns == []


def test_a7_the_tools_of_a_turn_are_compared():
    check = RecoveryCheck(STOCK)
    check.read(chunks(turns_of(KELVIN)[0]), tools=STOCK.tools)
    with pytest.raises(SchemaChanged):
        check.read(chunks(turns_of(KELVIN)[0]), tools=widened(STOCK))


def test_a7_a_scripted_model_that_widens_the_schema():
    case = stock_case()

    def widen(_: Any) -> Any:
        case.tools[0]["parameters"]["properties"]["unit"]["enum"].append("kelvin")
        return chunks(turns_of(KELVIN)[0])

    with pytest.raises(SchemaChanged):
        run_case_sync(case, ScriptedModel([widen]))


def test_a7_the_order_of_keys_counts_and_the_digest_is_in_the_file():
    text = case_text(STOCK)
    assert case_of(text) == STOCK
    with pytest.raises(SchemaChanged):
        case_of(text.replace('["celsius", "fahrenheit"]', '["fahrenheit", "celsius"]'))


def test_a8_one_valid_call_does_not_finish_the_task():
    check = talk(CELSIUS)
    assert not check.is_over
    assert check.due == "answer"
    assert results(check)[-1]["content"] == json.dumps(STOCK.result)
    assert talk(f"{CELSIUS}\n-\n{ANSWER}").end is End.RECOVERED
    wrong = "says It is warm.\n-\nsays It is nice.\n-\nsays It is 99.9 degrees."
    assert talk(f"{CELSIUS}\n-\n{wrong}").end is End.LIMIT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("17.5", "used"),
        ("It is 17.50 °C.", "used"),
        ("It is 17.5°C.", "used"),
        ("It is 117.5 degrees.", "contradicts"),
        ("It is 17 degrees.", "contradicts"),
        ("It is −17.5 degrees.", "contradicts"),
        ("It is warm in Bern.", "ignored"),
    ],
)
def test_a8_the_default_predicate_looks_for_the_value(text, expected):
    assert talk(f"{CELSIUS}\n-\nsays {text}").turns[-1].turn_class == expected
    free = msgspec.structs.replace(STOCK, answer=AnswerRule())
    assert talk(f"{CELSIUS}\n-\nsays {text}", case=free).turns[-1].turn_class == expected


def test_a8_a_predicate_of_ones_own():
    check = talk(
        f"{CELSIUS}\n-\nsays warm", predicate=lambda text: TurnClass.USED if "warm" in text else TurnClass.IGNORED
    )
    assert check.end is End.RECOVERED
    with pytest.raises(UsageError, match="used, ignored or contradicts"):
        talk(f"{CELSIUS}\n-\nsays warm", predicate=lambda _: TurnClass.FIXED)


def test_a8_a_call_in_doubt_is_a_correction_and_its_doubts_are_in_the_report():
    """A write that was read by guessing fits; whether a loop would run it (B15) is another question (A1)."""
    [case] = [case for case in bundled() if case.name == "04_transfer_money_enum"]
    fenced = f"```\n{native(turns_of('calls transfer_money ' + json.dumps(case.expected))[0])}\n```"
    check = RecoveryCheck(case)
    turn = check.read(fenced)
    assert (turn.turn_class, turn.valid, turn.corrected) == (TurnClass.FIXED, True, True)
    assert turn.calls[0].doubts


def test_a10_the_limit_is_the_callers():
    check = RecoveryCheck(STOCK, limit=1)
    check.read(chunks(turns_of(KELVIN)[0]))
    assert check.end is End.LIMIT
    with pytest.raises(UsageError, match="the dialogue is over"):
        check.request(model="m")
    with pytest.raises(UsageError, match="the dialogue is over"):
        check.read("")
    with pytest.raises(UsageError, match="limit=0"):
        RecoveryCheck(STOCK, limit=0)


def test_a11_the_report_records_the_conditions():
    conditions = Conditions(
        model="m", source="scripted", wire="chat", library="1", sampling={"temperature": 0}, limit=2
    )
    report = report_of(conditions, [talk(CELSIUS).report()])
    written = msgspec.to_builtins(report)
    assert written["conditions"]["first_call"] == "prepared"
    assert written["conditions"]["sampling"] == {"temperature": 0}
    assert written["dialogues"][0]["digest"] == STOCK.digest
    assert written["dialogues"][0]["prepared"]["origin"] == "prepared"
    assert written["statement"] == STATEMENT
    for words in ("one behaviour", "no reliability in general", "no execution without validation"):
        assert words in STATEMENT
    for rate in report.metrics.rates:
        assert str(rate.n) in rate.words
        assert ("%" in rate.words) is (rate.n > 0)
        assert ("interval" in rate.words) is (rate.n > 0)


def test_a12_the_pack():
    cases = bundled()
    assert cases[0] == STOCK
    assert len(cases) - 1 >= 24
    wanted = "enum type missing extra union range array_for_string truncated_parameter truncated_envelope"
    assert {case.kind for case in cases} >= {*wanted.split(), "unclosed_json", "two_errors", "refused"}
    assert len({case.name for case in cases}) == len(cases)


def test_a12_cases_of_any_schema():
    tool = {
        "name": "set",
        "parameters": {
            "type": "object",
            "properties": {
                "level": {"$ref": "#/$defs/level"},
                "name": {"type": "string", "maxLength": 5},
                "at": {
                    "anyOf": [{"type": "object", "properties": {"hour": {"type": "integer"}}, "required": ["hour"]}]
                },
            },
            "required": ["level", "name", "at"],
            "$defs": {"level": {"enum": ["low", "high"]}},
        },
    }
    cases = generate(tool)
    assert {case.kind for case in cases} >= {"enum", "type", "missing", "extra", "union", "unclosed_json", "two_errors"}
    for case in cases:
        check = RecoveryCheck(case)
        arguments = json.dumps(case.expected)
        assert check.read(chunks(turns_of(f"calls set {arguments}")[0])).turn_class is TurnClass.FIXED, case.kind


def test_a12_what_cannot_be_generated():
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"]}}
    with pytest.raises(UsageError, match="not the arguments of a right call"):
        generate(tool, arguments={"a": 2})
    with pytest.raises(UsageError, match="unknown"):
        generate(tool, kinds=["wrong"])
    assert (
        generate({"name": "f", "parameters": {"type": "object"}}, arguments={}, kinds=["enum", "missing", "range"])
        == []
    )
    endless = {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}
    with pytest.raises(UsageError, match="contains itself"):
        generate({"name": "f", "parameters": endless})


def test_a12_metrics_say_out_of_what():
    names = ("recovered at once", "recovered at the second try", "cut by length", "another declared tool")
    dialogues = [talk(TALKS[name].script).report() for name in names]
    found = {(rate.name, rate.of.split()[0]): (rate.count, rate.n) for rate in measure(dialogues).rates}
    assert found["recovered", "dialogues"] == (2, 4)
    assert found["fix@1", "dialogues"] == (1, 4)
    assert found["fix@k, k the limit", "dialogues"] == (2, 4)
    assert found["unfinished", "turns"] == (1, 5)
    assert found["foreign or invented tool", "turns"] == (1, 5)
    assert found["tool kept", "turns"] == (4, 5)
    assert found["right fields kept", "turns"] == (3, 5)
    assert found["repeats the error", "turns"] == (1, 5)
    assert found["answer uses the result", "first"] == (2, 2)
    assert found["answer uses the result", "dialogues"] == (2, 4)
    assert measure(dialogues).turns_to_recovery == {"1": 1, "2": 1}


def test_a13_raw_output_beside_the_documented_format():
    cut = native(turns_of(f"{CELSIUS}\ncut")[0])
    turn = RecoveryCheck(STOCK).read(cut, finish_reason="length")
    [misread] = turn.misread
    assert misread.raw == cut
    assert misread.code == "unclosed_parameter"
    assert "'</parameter>'" in misread.expected
    assert misread.message.endswith("expected '</parameter>' or text")
    [prepared] = [
        RecoveryCheck(case).report().prepared for case in bundled() if case.name == "07_write_file_truncated_parameter"
    ]
    assert prepared.misread[0].raw == prepared.raw
    assert "'</parameter>'" in prepared.misread[0].expected


def test_a13_without_the_text_it_is_what_the_decoder_kept():
    decoder = NativeDecoder(tools=STOCK.tools)
    events = decoder.feed(native(turns_of(f"{CELSIUS}\ncut")[0])) + decoder.close("length")
    assert "Bern" in RecoveryCheck(STOCK).take(events).misread[0].raw


SCRIPT = [native(turn) for turn in turns_of(TALKS["recovered at the second try"].script)]


def recordings() -> list[str]:
    return [write(Header(finish_reason="stop"), [Piece(0.0, text)]) for text in SCRIPT]


def test_a14_scripted_recorded_and_live_are_the_same(tmp_path):
    import httpx

    files = []
    for number, text in enumerate(recordings()):
        files.append(tmp_path / f"{number}.jsonl")
        files[-1].write_text(text, encoding="utf-8")

    async def live() -> Any:
        async with httpx.AsyncClient(trust_env=False) as client:
            from streamparse.agent.recovery import run_case

            model = HttpModel(client, f"{server.url}/v1/chat/completions")
            return await run_case(STOCK, model, name="some model")

    with Server(files, speed=float("inf")) as server:
        dialogues = [
            run_case_sync(STOCK, ScriptedModel(SCRIPT)),
            run_case_sync(STOCK, RecordedModel(files, wire="chat")),
            run(live),
        ]
        asked = server.requests
    assert {dialogue.end for dialogue in dialogues} == {End.RECOVERED}
    classes = [[turn.turn_class for turn in dialogue.turns] for dialogue in dialogues]
    assert classes == [["repeat_identical", "fixed", "used"]] * 3
    assert len(asked) == 3


def test_a12_cut_and_mislabelled_turns():
    """A finish reason that promises calls that did not come, or hides some that did. Raw text has none that could."""

    def flags(content: Any, finish: str | None = None, wire: Wire = Wire.CHAT) -> tuple[bool, bool]:
        check = RecoveryCheck(STOCK)
        check.request(wire, model="m")
        turn = check.read(content, finish_reason=finish)
        return turn.cut, turn.mislabelled

    right, cut = (chunks(turn) for turn in turns_of(f"{CELSIUS}\n-\n{CELSIUS}\ncut"))
    assert flags(right) == (False, False)
    assert flags(cut) == (True, False)
    hidden = [*right[:-1], {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]
    assert flags(hidden) == (False, True)
    promised = [{"choices": [{"index": 0, "delta": {"content": "Hm."}, "finish_reason": "tool_calls"}]}]
    assert flags(promised) == (False, True)
    assert flags(right[:-1]) == (True, False)  # broke off without a finish
    assert flags(native(turns_of(CELSIUS)[0]), "stop", Wire.TEXT) == (False, False)


# The history that is sent is one that a server takes.


@pytest.mark.parametrize("name", TALKS)
def test_the_history_is_always_legal(name):
    check = RecoveryCheck(STOCK)
    for turn in turns_of(TALKS[name].script):
        request = check.request(model="m")
        assert preflight(request["messages"]) == []
        assert [tool["function"]["name"] for tool in request["tools"]] == ["get_weather", "get_time"]
        assert check.request(Wire.MESSAGES, model="m")["max_tokens"] == 4096
        assert "<think>" in check.request(Wire.COMPLETIONS, model="m")["prompt"]
        check.read(chunks(turn))


@pytest.mark.parametrize("wire", [Wire.TEXT, Wire.CHAT, Wire.MESSAGES])
def test_the_ids_of_a_dialogue_differ(wire):
    """Also where the wire has none (N17)."""
    turns = [on_wire(turn, wire) for turn in turns_of("\n-\n".join([KELVIN, TALKS["rankine"].script, CELSIUS, ANSWER]))]
    dialogue = run_case_sync(STOCK, ScriptedModel(turns))
    ids = [call.id for turn in dialogue.turns for call in turn.calls]
    assert len(ids) == 3
    if wire is Wire.TEXT:
        assert len({"prepared_0", *ids}) == 4


def test_a_turn_is_a_whole_answer():
    call = ToolCallFinished(0, ToolCall("c", "get_weather", {}))
    wrong: list[list[Event]] = [[], [call], [Ended("stop"), call], [Ended("stop"), Ended("stop")]]
    for events in wrong:
        with pytest.raises(UsageError, match="all events of one answer"):
            RecoveryCheck(STOCK).take(events)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tool": "other"}, "none of its tools"),
        ({"limit": 0}, "its limit is 0"),
        ({"fixes": ()}, "nothing would have to be corrected"),
        ({"pins": (("where",),)}, "not in expected"),
        ({"pins": (("unit",),)}, "both a pin and a fix"),
    ],
)
def test_cases_that_contradict_themselves(change, message):
    with pytest.raises(UsageError, match=message):
        msgspec.structs.replace(STOCK, **change).__post_init__()


def test_a_prepared_call_that_is_right_is_no_case():
    right = msgspec.structs.replace(STOCK.prepared, arguments=STOCK.expected)
    with pytest.raises(UsageError, match="is right in the prepared call"):
        msgspec.structs.replace(STOCK, prepared=right).__post_init__()


def test_a_result_that_says_nothing_new_is_no_case():
    with pytest.raises(UsageError, match=r"answer\.contains"):
        RecoveryCheck(msgspec.structs.replace(STOCK, answer=AnswerRule(), result={"unit": "celsius"}))
