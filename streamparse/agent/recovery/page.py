"""A report as a page for people: one HTML file that loads nothing, and in which nothing that a model wrote is markup.

Every text goes through ``_text``; the rest is written here. A policy in the page forbids whatever it does not bring
along. Conditions first, then the cases and their classes, the metrics, the dialogues, and what all this does not show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Final

from streamparse.agent.recovery.classes import GOOD, MIDDLE
from streamparse.agent.recovery.rates import INDEPENDENT, Metrics, Rate, percent
from streamparse.agent.recovery.report import CallReport, Dialogue, Misread, Report, TurnReport
from streamparse.events import join_words, json_text
from streamparse.tools.wording import plain


def page(report: Report) -> str:
    """The page, as the text of an HTML file in UTF-8."""
    parts = [
        f"<h1>Recovery check: {_text(report.conditions.model)}</h1>",
        _section("conditions", "Conditions", _conditions(report)),
        _section("cases", "Cases", _cases(report)),
        _section("metrics", "Metrics", _metrics(report.metrics)),
        _section("dialogues", "Dialogues", "".join(map(_dialogue, report.dialogues))),
        _section("statement", "What this shows, and what not", f"<p>{_text(report.statement)}</p>"),
    ]
    return f"{_HEAD}<body><main>{''.join(parts)}</main></body></html>\n"


def _text(text: object) -> str:
    """Any text as HTML: no markup, and no character that cannot be seen, but for line breaks and tabs."""
    lines = str(text).split("\n")
    return escape("\n".join(plain(line.replace("\t", "    ")) for line in lines), quote=True)


def _section(name: str, title: str, body: str) -> str:
    return f'<section id="{name}"><h2>{title}</h2>{body}</section>'


def _pairs(pairs: Iterable[tuple[str, object]]) -> str:
    return f"<dl>{''.join(f'<dt>{name}</dt><dd>{_text(value)}</dd>' for name, value in pairs)}</dl>"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Cells are HTML. On a narrow screen each row is a block, and each cell says its column."""
    top = "".join(f"<th>{name}</th>" for name in head)
    body = "".join(
        "<tr>" + "".join(f'<td data-name="{name}">{cell}</td>' for name, cell in zip(head, row, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _chip(word: str) -> str:
    kind = "good" if word in GOOD else "middle" if word in MIDDLE else "bad"
    return f'<span class="chip {kind}">{_text(word)}</span>'


def _block(text: str, *, name: str = "") -> str:
    return f"<pre>{_text(text)}</pre>" if not name else f"<h5>{name}</h5><pre>{_text(text)}</pre>"


# The parts


def _conditions(report: Report) -> str:
    conditions = report.conditions
    digests = sorted({dialogue.digest[:16] for dialogue in report.dialogues})
    return _pairs(
        [
            ("Model", conditions.model),
            ("Source", conditions.source),
            ("Wire", conditions.wire),
            ("Sampling", json_text(conditions.sampling) if conditions.sampling else "as the server has it"),
            ("Limit", "as each case says" if conditions.limit is None else f"{conditions.limit} wrong turns"),
            ("Runs of each case", conditions.repeat),
            ("First call", f"{conditions.first_call}, not observed: the model did not make it"),
            ("Schemas (SHA-256, beginning)", " ".join(digests)),
            ("Library", conditions.library),
        ]
    )


def _cases(report: Report) -> str:
    rows = [
        [
            f'<a href="#{_anchor(dialogue)}">{_text(dialogue.case)}</a>',
            _text(dialogue.kind),
            _text(dialogue.run),
            " ".join(_chip(turn.turn_class) for turn in dialogue.turns),
            _chip(dialogue.end or "not over"),
        ]
        for dialogue in report.dialogues
    ]
    table = _table(["Case", "What was wrong", "Run", "Turns", "End"], rows)
    if not report.unmeasured:
        return table
    missing = "".join(f"<li>{_text(f'{each.case}, run {each.run}: {each.reason}')}</li>" for each in report.unmeasured)
    return f"{table}<h3>Not measured</h3><p>The transport failed. These are in no rate.</p><ul>{missing}</ul>"


def _metrics(metrics: Metrics) -> str:
    rows = [
        [_text(each.name), _text(f"{each.count} of {each.n}"), _text(each.of), _interval(each)]
        for each in metrics.rates
    ]
    table = _table(["Rate", "Count", "Out of", "Share, with its 95 % Wilson interval"], rows)
    fixed = ", ".join(f"{count} at turn {turn}" for turn, count in metrics.turns_to_recovery.items()) or "none"
    median = "" if metrics.median_turns is None else f"; median {metrics.median_turns:g}"
    counts = [
        ("Dialogues", f"{metrics.dialogues}, and {metrics.unmeasured} not measured"),
        ("Turns", metrics.turns),
        ("Calls fixed", f"{fixed}{median}"),
        ("Classes", _counts(metrics.classes)),
        ("Levels", _counts(metrics.levels)),
        ("Ends", _counts(metrics.ends)),
    ]
    return f"{table}<p>{INDEPENDENT}</p>{_pairs(counts)}"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{word} {count}" for word, count in counts.items()) or "none"


def _interval(each: Rate) -> str:
    if not each.n:
        return "nothing was observed"
    share, low, high = each.count / each.n, each.low, each.high
    marks = (
        f'<i style="left:{100 * low:.1f}%;width:{100 * (high - low):.1f}%"></i><b style="left:{100 * share:.1f}%"></b>'
    )
    words = f"{percent(share)} % (n = {each.n}; {percent(low)} to {percent(high)} %)"
    return f'{words}<span class="bar">{marks}</span>'


def _dialogue(dialogue: Dialogue) -> str:
    prepared = dialogue.prepared
    head = _pairs(
        [
            ("The user asks", dialogue.user),
            ("Wrong", f"{', '.join(dialogue.wrong_fields)} (level {prepared.level})"),
            ("To be kept", ", ".join(dialogue.pins) or "nothing"),
            ("A right call", f"{dialogue.tool} {dialogue.expected}"),
            ("The mock tool returns", dialogue.result),
            ("Schema", dialogue.digest),
        ]
    )
    steps = "".join(_steps(dialogue))
    end = _chip(dialogue.end or "not over")
    return (
        f'<article id="{_anchor(dialogue)}"><h3>{_text(dialogue.case)}, run {dialogue.run} {end}</h3>'
        f"<p>{_text(dialogue.title)}</p>{head}{_misread(prepared.misread, 'prepared call')}{steps}</article>"
    )


def _steps(dialogue: Dialogue) -> Iterator[str]:
    """One row for each turn: what was rejected, what the model was told, and what it did then."""
    rejected = "".join(_call(call, "Prepared, not observed") for call in dialogue.prepared.calls)
    told = "".join(_block(call.observation) for call in dialogue.prepared.calls)
    for turn in dialogue.turns:
        answering = turn.due == "answer"
        heads = ("Call" if answering else "Rejected", "The model was told", f"Turn {turn.number}: the {turn.due}")
        columns = zip(heads, (rejected, told, _turn(turn)), strict=True)
        yield f'<div class="step">{"".join(f"<div><h4>{head}</h4>{body}</div>" for head, body in columns)}</div>'
        yield _misread(turn.misread, f"turn {turn.number}")
        if turn.calls:
            rejected = "".join(_call(call, "") for call in turn.calls)
            told = "".join(_block(call.observation) for call in turn.calls)
        elif turn.feedback:
            rejected, told = _block(turn.text or "(no text)"), _block(turn.feedback)


def _turn(turn: TurnReport) -> str:
    facts = [f"level {turn.level}"] if turn.level else []
    facts += [f"finish reason {turn.finish_reason or 'none'}"]
    facts += ["repeats the error"] if turn.repeats else []
    facts += ["cut"] if turn.cut else []
    facts += ["mislabelled"] if turn.mislabelled else []
    facts += [
        f"{name}: {'unknown' if value is None else 'yes' if value else 'no'}"
        for name, value in (("read", turn.read), ("valid", turn.valid), ("corrected", turn.corrected))
    ]
    reasoning = f"<details><summary>Reasoning</summary>{_block(turn.reasoning)}</details>" if turn.reasoning else ""
    text = _block(turn.text) if turn.text else ""
    calls = "".join(_call(call, "") for call in turn.calls)
    calls += f"<p>+{turn.more_calls} more</p>" if turn.more_calls else ""
    return f'{_chip(turn.turn_class)}<p class="facts">{_text("; ".join(facts))}</p>{reasoning}{text}{calls}'


def _call(call: CallReport, note: str) -> str:
    issues = "".join(f"<li>{_text(issue)}</li>" for issue in (*call.issues, *call.doubts))
    note = f'<p class="facts">{note}</p>' if note else ""
    return f"{note}<pre>{_text(call.name)}\n{_text(call.arguments)}</pre><ul>{issues}</ul>"


def _misread(misread: Sequence[Misread], where: str) -> str:
    """A13: before it is blamed on the model, what came beside what is documented."""
    return "".join(
        f'<div class="step misread"><div><h4>Format error, {_text(where)}</h4>'
        f"<p>{_text(each.code)}: {_text(each.message)}</p></div>"
        f"<div>{_block(each.raw or '(nothing)', name='Raw output')}</div>"
        f"<div>{_block(join_words(each.expected) or '(not told)', name='Documented there')}</div></div>"
        for each in misread
    )


def _anchor(dialogue: Dialogue) -> str:
    safe = "".join(each if each.isascii() and each.isalnum() else f"-{ord(each):x}-" for each in dialogue.case)
    return f"case-{safe}-{dialogue.run}"


_HEAD: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>Recovery check</title>
<style>
:root { color-scheme: light dark; --back: #ffffff; --fore: #1d2126; --soft: #5a636e; --line: #d5dae0; --box: #f4f6f8;
  --good: #146c2e; --middle: #8a5300; --bad: #b3261e; --link: #0b57d0; }
@media (prefers-color-scheme: dark) { :root { --back: #14171a; --fore: #e6e9ec; --soft: #a3adb8; --line: #39414a;
  --box: #1f2429; --good: #7bd88f; --middle: #f0b429; --bad: #ff8a80; --link: #8ab4f8; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--fore); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 76rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; border-bottom: 1px solid var(--line); margin-top: 2rem; }
h3 { font-size: 1.05rem; } h4, h5 { margin: 0 0 .3rem; font-size: .85rem; color: var(--soft); }
a { color: var(--link); }
dl { display: grid; grid-template-columns: minmax(7rem, 12rem) 1fr; gap: .2rem 1rem; margin: .5rem 0; }
dt { color: var(--soft); } dd { margin: 0; white-space: pre-wrap; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0; }
th, td { text-align: left; vertical-align: top; padding: .35rem .5rem; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; font-size: .85rem; }
pre { margin: 0 0 .5rem; padding: .5rem; background: var(--box); border-radius: .3rem; white-space: pre-wrap;
  overflow-wrap: anywhere; font: .8rem/1.45 ui-monospace, monospace; max-height: 30rem; overflow-y: auto; }
ul { margin: 0 0 .5rem; padding-left: 1.2rem; font-size: .85rem; }
article { border-top: 1px solid var(--line); padding: .5rem 0 1rem; }
.step { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: .75rem; padding: .5rem 0;
  border-top: 1px dashed var(--line); }
.misread { border-left: 3px solid var(--bad); padding-left: .6rem; }
.facts { margin: .3rem 0; color: var(--soft); font-size: .85rem; }
.chip { display: inline-block; padding: 0 .45rem; border: 1px solid currentColor; border-radius: 1rem;
  font-size: .8rem; }
.good { color: var(--good); } .middle { color: var(--middle); } .bad { color: var(--bad); }
.bar { display: block; position: relative; height: .5rem; margin-top: .25rem; background: var(--box);
  border: 1px solid var(--line); }
.bar i { position: absolute; top: 0; bottom: 0; background: var(--link); opacity: .45; }
.bar b { position: absolute; top: -2px; bottom: -2px; width: 2px; margin-left: -1px; background: var(--fore); }
@media (max-width: 45rem) {
  .step, dl { grid-template-columns: minmax(0, 1fr); } dt { margin-top: .4rem; }
  thead { display: none; } tr, td { display: block; } td { border: 0; padding: .1rem 0; }
  tr { border-bottom: 1px solid var(--line); padding: .5rem 0; }
  td::before { content: attr(data-name) ": "; color: var(--soft); font-size: .85rem; }
}
</style></head>
"""
