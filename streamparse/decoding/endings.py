"""The end of an answer: what it means that the stream ended in a state (rules E, N13)."""

from __future__ import annotations

from streamparse.decoding.answer import Answer
from streamparse.decoding.calls import OpenCall
from streamparse.decoding.table import State
from streamparse.events import DeviationCode, ErrorCode, ErrorDetail, Reasoning, Text
from streamparse.limits import EXCERPT

_BY_OPAQUE = {
    "REASONING": ErrorCode.UNCLOSED_REASONING,
    "NAME": ErrorCode.UNCLOSED_HEADER,
    "KEY": ErrorCode.UNCLOSED_HEADER,
    "NAME_ATTRIBUTES": ErrorCode.UNCLOSED_HEADER,
    "KEY_ATTRIBUTES": ErrorCode.UNCLOSED_HEADER,
    "VALUE": ErrorCode.UNCLOSED_PARAMETER,
    "PAYLOAD": ErrorCode.UNCLOSED_CALL,
}

CUT_SHORT = frozenset({"length", "error"})
"""Finish reasons by which a tag that has begun is no text: the answer was cut, or its transport broke."""


def code_of(state: State) -> ErrorCode | None:
    """E1: the error that the end of the stream is in this state; None where an answer may end."""
    if state.may_end or state.opaque in ("TEXT", "ROLE"):
        return None
    if state.opaque:
        return _BY_OPAQUE[state.opaque]
    return ErrorCode.UNCLOSED_CALL if state.open[-1:] == ("call",) else ErrorCode.UNCLOSED_ENVELOPE


def end(answer: Answer, cut: str, header: str) -> None:
    """End the answer. ``cut`` is the beginning of a tag that the stream ended in, ``header`` that of a name or key."""
    answer.end_stray()
    code, call = code_of(answer.scanner.state), answer.call
    if code is None:
        _in_text(answer, cut)
    elif call is not None and not call.over:
        _in_call(answer, call, code, header, cut)
    elif call is None and code is ErrorCode.UNCLOSED_REASONING:
        _in_reasoning(answer, cut)
    elif call is None:
        _in_envelope(answer, cut)
    answer.seal_provisional()


def _error(answer: Answer, code: ErrorCode, excerpt: str) -> ErrorDetail:
    """E1, or E4 where the transport broke."""
    position, report = answer.scanner.position, answer.report
    if answer.finish_reason == "error":
        return report.error(ErrorCode.STREAM_INTERRUPTED, "the stream broke", position, excerpt)
    return report.error(code, "end of stream", position, excerpt)


def _in_text(answer: Answer, cut: str) -> None:
    if answer.finish_reason == "error" or (cut and answer.finish_reason == "length"):
        answer.report.fail(_error(answer, ErrorCode.UNCLOSED_TAG, cut))
    elif cut:
        answer.report.events.append(Text(cut))


def _in_reasoning(answer: Answer, cut: str) -> None:
    whole = answer.finish_reason not in CUT_SHORT
    if cut and whole:
        answer.report.events.append(Reasoning(cut))
    if not answer.provisional or answer.finish_reason == "error":
        answer.report.fail(_error(answer, ErrorCode.UNCLOSED_REASONING, "" if whole else cut))


def _in_envelope(answer: Answer, cut: str) -> None:
    """E2: sealed calls stay sealed."""
    report, envelope = answer.report, answer.envelope
    if envelope is not None and (not envelope.calls or answer.finish_reason == "error"):
        report.fail(_error(answer, ErrorCode.UNCLOSED_ENVELOPE, (envelope.stray.text + cut)[-EXCERPT:]))
        return
    if envelope is not None:
        report.tell(DeviationCode.UNCLOSED_ENVELOPE, answer.scanner.position, cut)
    report.clean = report.clean and answer.finish_reason != "length"


def _in_call(answer: Answer, call: OpenCall, code: ErrorCode, header: str, cut: str) -> None:
    """E3: a call that is not closed fails. One whose name never came was never announced: then the answer does."""
    call.keep_raw(header)
    raw = call.partial().raw
    error = _error(answer, code, (raw + cut)[-EXCERPT:])
    if call.started or call.error is not None:
        answer.report.conclude(call.fail(call.error or error))
    else:
        answer.report.fail(error)
    answer.call = None
