"""State table + chunks of text -> lexemes. Knows no lark, no schema, no I/O, and no dialect.

The machine is the table; this module only runs it. Its buffer holds what could still turn out to be a tag, never more:

* *tag begun*: the end of the buffer is a proper prefix of a tag that may come here;
* *margin*: white space that a tag would claim, if one came;
* *opener in prose* (N3): a tag that counts only with the right tag behind it, until that is seen;
* *chain* (N5): a closing tag of a value that counts only if the tags behind it lead out of the call or on to the next
  parameter, until they are seen;
* *guard*: a tag about which the decoder's guard has to see more (a quote that may be closed).

What is held back is bounded by the longest tag, and by ``LOOKAHEAD`` characters in the last three cases; everything
else is handed on in the feed that brought it. Each character is looked at a bounded number of times: time is linear
for every chunking.

Lexemes are tuples ``(kind, tag, text)``. Their texts and the tags that counted, joined (text before tag), are the
input: nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Protocol, TypeAlias

from streamparse.decoding.chains import Chains, Stall, past_space
from streamparse.decoding.plan import Plan, margin_start, plans
from streamparse.decoding.table import NO_MARGIN, Margin, Role, State, Table, Tag, Unit
from streamparse.decoding.verdict import DATA, FADE, TAKE, WAIT, Verdict


class Kind(IntEnum):
    """What a lexeme is. ``tag`` is set for TAG and NOTE; ``text`` for the others, and for TAG the white space before
    it."""

    TEXT = 0  # opaque text of the state
    TAG = 1  # a tag that counted; the scanner is already in the state behind it
    SPACE = 2  # white space of the format
    STRAY = 3  # text where only tags may stand
    NOTE = 4  # zero width: the text before it ends in this tag, which did not count here
    LOST = 5  # zero width: the rule named by ``text`` was left without its closing tag
    CUT = 6  # the stream ended in this beginning of a tag


TEXT, TAG, SPACE, STRAY, NOTE, LOST, CUT = Kind

Lexeme: TypeAlias = tuple[Kind, Tag | None, str]


class Guard(Protocol):
    """A decoder's say in opaque text: is this tag data (inside a JSON string, a quoted attribute, a quoted pair)?

    The decoder has been given all text before the tag when its guard is asked.
    """

    def judge(self, tag: Tag, buffer: str, end: int, final: bool) -> Verdict:
        """The verdict on ``tag``, which ends at ``end`` of ``buffer``; what follows there may be looked at. WAIT is no
        answer when ``final``. TAKE leaves the decision to the grammar, LAST to the last resort of N5."""


_SPACE = re.compile(r"\s*").match
_MARGIN_MATCH = {
    Unit.LINE: (re.compile(r"[ \t]{0,256}\r?\n").match, re.compile(r"[ \t]{0,256}\r?\Z").match),
    Unit.BREAK: (re.compile(r"\r?\n").match, re.compile(r"\r?\Z").match),
    Unit.SPACE: (re.compile(r"\s").match, re.compile(r"\Z").match),
}
"""One unit of a margin, and a unit that may have begun at the end of the buffer."""


class Scanner:
    """One pass over one stream.

    ``feed`` and ``close`` are lazy: use each lexeme before asking for the next, because a decoder sets ``guard``
    between two of them. ``offset`` is the place of the tag or text just given, in characters from the start of the
    stream. While ``plain``, a chunk that contains nothing of ``plan.stops`` is opaque text from end to end; who uses
    that calls ``pass_over`` instead of ``feed``."""

    __slots__ = (
        "_base",
        "_blank",
        "_buffer",
        "_candidate",
        "_chains",
        "_cut",
        "_edge",
        "_limit",
        "_partial",
        "_plans",
        "_previous",
        "_queue",
        "_scan",
        "_shown",
        "_skip",
        "_stall",
        "_straying",
        "assumed",
        "guard",
        "last_resort",
        "offset",
        "plain",
        "plan",
        "table",
    )

    def __init__(self, table: Table, start: str = "start", *, chains: bool = True, bare: bool = False) -> None:
        self.table = table
        self._plans = plans(table, bare)
        self._chains = Chains(table, self._plans) if chains else None
        self.plan: Plan = self._plans[table.starts[start]]
        self.guard: Guard | None = None
        self.plain = False
        self.offset = 0
        self.assumed = False  # the tag just given ended a value whose chain was cut by the end of the stream (E2)
        self.last_resort = False  # the tag just given ended a value by the last resort of N5
        self._buffer = ""
        self._base = 0  # offset of the buffer's first character
        self._shown = 0  # the buffer was handed on up to here
        self._scan = 0  # where the search for the next tag goes on
        self._partial = -1  # where a mention has begun; its text is handed on all the same
        self._limit = 0  # up to here the text is certain
        self._cut = -1  # where the stream ended inside a tag
        self._candidate: tuple[Tag, int, int] | None = None
        self._edge = 0  # directly behind a tag: the start of a line, as far as N3 is concerned
        self._blank = True  # nothing but blanks stands before the buffer on its line
        self._previous = "\n"  # the character before the buffer
        self._queue: list[Lexeme] = []
        self._skip = NO_MARGIN
        self._straying = False
        self._stall: Stall | None = None

    @property
    def state(self) -> State:
        """The state the scanner is in."""
        return self.plan.state

    @property
    def position(self) -> int:
        """How many characters have come in."""
        return self._base + len(self._buffer)

    @property
    def reached(self) -> int:
        """How many characters have been handed on."""
        return self._base + self._shown

    def cut_short(self) -> None:
        """The answer was cut: its end is no last resort (N5) for a value."""
        if self._chains is not None:
            self._chains.cut_short = True

    def pass_over(self, length: int) -> None:
        """Note that a plain chunk was taken without a feed."""
        self._base += length

    def feed(self, chunk: str) -> Iterator[Lexeme]:
        """The lexemes that this chunk makes certain."""
        lexeme = self.take(chunk)
        while lexeme is not None:
            yield lexeme
            lexeme = self.pull()

    def close(self) -> Iterator[Lexeme]:
        """The lexemes that the end of the stream makes certain."""
        while (lexeme := self.pull(True)) is not None:
            yield lexeme

    def take(self, chunk: str) -> Lexeme | None:
        """Take a chunk, and give its first lexeme; ``pull`` gives the others, one by one, until None. (``feed`` is
        both, as an iterator.)"""
        self.plain = False
        buffer = self._buffer = self._buffer + chunk
        plan = self.plan
        if self._stall is None and len(buffer) < plan.longest and buffer in plan.begun:
            return None  # still inside the tag that has begun; only to be quick about it
        return self.pull()

    def pull(self, final: bool = False) -> Lexeme | None:
        """The next lexeme that is certain, or None: more input has to come first."""
        if self._queue:
            return self._queue.pop(0)
        buffer, stall, plan = self._buffer, self._stall, self.plan
        if stall is not None and not final:
            if stall[0].ends_in(stall[1], buffer, stall[2]):
                return None  # still inside a tag of a chain; only to be quick about it
            self._stall = None
        if self._skip is not NO_MARGIN:
            lexeme = self._skip_margin(self._skip, final)
            if lexeme is not None or self._skip is not NO_MARGIN:
                return lexeme
        if self._shown < len(buffer):
            lexeme = self._inside(final) if plan.opaque else self._between(final)
            if lexeme is not None:
                return lexeme
        self._trim()
        return None

    # Where opaque text may stand

    def _inside(self, final: bool) -> Lexeme | None:
        while True:
            plan = self.plan
            found = self._candidate or self._search(final)
            if found is None:
                text_end = self._limit
            else:
                tag, start, end = found
                text_end = self._claim(tag, start) if tag.before.most else start
            if text_end > self._shown:
                if plan.opaque_target == plan.index:
                    self._candidate = found
                    return self._show(text_end, TEXT)
                self.plan = self._plans[plan.opaque_target]  # other tags may stand behind the first character of text
                self._candidate = None
                continue
            self._candidate = None
            if found is None:
                return self._end_in_tag()
            verdict = self._judge(tag, start, end, final)
            if verdict is TAKE:
                return self._take(tag, start, end)
            if verdict is WAIT:
                return None
            if verdict is FADE:
                self._cut = start
                return self._end_in_tag()
            if verdict is DATA and plan.opaque_target != plan.index:
                self.plan = self._plans[plan.opaque_target]  # likewise
                continue
            if verdict is DATA:
                self._scan = end
                self._queue.append((NOTE, tag, ""))
                return self._show(end, TEXT)
            self._scan = start + 1

    def _claim(self, tag: Tag, start: int) -> int:
        """Where the text before a tag ends, less the white space that the tag claims."""
        return margin_start(tag.before, self._buffer, start, self._shown, False)

    def _search(self, final: bool) -> tuple[Tag, int, int] | None:
        """The next tag in the buffer, or None; then ``_limit`` says how much text is certain."""
        plan, buffer, at = self.plan, self._buffer, self._scan
        size = len(buffer)
        if at <= self._partial:
            self._partial = -1
        match = plan.search(buffer, at)
        if match is not None:
            self._partial = -1
            return plan.tags[match[0]], match.start(), match.end()
        self._cut = -1
        low = max(at, size - plan.longest + 1)
        while (begun := plan.search_begun(buffer, low)) is not None:
            place = begun.start()
            margin = plan.prefixes_at_line[begun[0]]
            if margin is not None and plan.prose and self._before(place) != "\n":
                margin = plan.prefixes.get(begun[0])
            if margin is not None:
                self._scan = place
                self._limit = place if final else margin_start(margin, buffer, place, self._shown, False)
                self._cut = place if final else -1
                return None
            if self._partial < 0:
                self._partial = place
            low = place + 1
        self._scan = size
        self._limit = size if final else plan.hold(buffer, self._shown)
        return None

    def _before(self, at: int) -> str:
        """The character before a place; a line break where a line starts for N3."""
        if at == self._edge:
            return "\n"
        return self._buffer[at - 1] if at else self._previous

    def _line_is_blank(self, at: int) -> bool:
        """Whether nothing but blanks stands before a place on its line; directly behind a tag a line starts."""
        start = max(self._buffer.rfind("\n", 0, at) + 1, self._edge)
        line = self._buffer[start:at]
        return (not line or line.isspace()) and (start > 0 or self._edge == 0 or self._blank)

    def _judge(self, tag: Tag, start: int, end: int, final: bool) -> Verdict | None:
        """The verdict on a tag in opaque text; None for one that is not even worth a note."""
        plan = self.plan
        if tag.text in plan.noted:
            return self._judge_mention(tag, start)
        if plan.prose:
            return self._judge_prose(tag, start, end, final)
        verdict = TAKE if self.guard is None else self.guard.judge(tag, self._buffer, end, final)
        if verdict is DATA or verdict is WAIT or tag.text not in plan.chained or self._chains is None:
            return verdict
        verdict, self.assumed, self.last_resort = self._chains.judge(
            tag, self._buffer, end, final, verdict is Verdict.LAST
        )
        if verdict is WAIT:
            self._stall = self._chains.stall
        return verdict

    def _judge_mention(self, tag: Tag, start: int) -> Verdict | None:
        before = self._before(start)
        if self.plan.prose and before == "`":
            return None
        return None if tag.terminal == "FENCE" and not self._line_is_blank(start) else DATA

    def _judge_prose(self, tag: Tag, start: int, end: int, final: bool) -> Verdict:
        """N3: when a tag counts among text that is written for readers."""
        before = self._before(start)
        if tag.role is Role.MARK or tag.rule == "turn":
            return TAKE
        if tag.role is not Role.OPEN:
            return self._judge_closer(tag, before, end, final)
        if before == "\n" and (self.plan.opaque == "TEXT" or tag.rule == "reasoning"):
            return TAKE
        return self._confirm(self._plans[tag.target], end, final)

    def _judge_closer(self, tag: Tag, before: str, end: int, final: bool) -> Verdict:
        if tag.nonstandard and before != "\n":
            return DATA
        if before == "`":
            if end == len(self._buffer):
                return TAKE if final else WAIT
            return DATA if self._buffer[end] == "`" else TAKE
        return TAKE

    def _confirm(self, inner: Plan, end: int, final: bool) -> Verdict:
        """Whether the next non-blank text opens what may stand inside the tag: only then does it count amid a line."""
        if inner.opaque and inner.opaque != "PAYLOAD":
            return DATA
        buffer = self._buffer
        at = past_space(buffer, end)
        if at < 0:
            return DATA
        if at == len(buffer):
            return FADE if final else WAIT
        if inner.opaque:
            return TAKE if buffer[at] == "{" else DATA
        match = inner.match(buffer, at)
        if match is not None:
            return TAKE if inner.tags[match[0]].role is Role.OPEN else DATA
        if inner.ends_in(inner.begun_openers, buffer, at):
            return FADE if final else WAIT
        return DATA

    def _take(self, tag: Tag, start: int, end: int) -> Lexeme:
        """Let a tag count: the queue gets what comes with it, in order."""
        lost = self.plan.lost
        space = self._buffer[self._shown : start]
        self.offset = self._base + start
        self._shown = self._scan = self._edge = end
        self._partial = -1
        self.plan = self._plans[tag.target]
        self.guard = None
        self._skip = tag.after if tag.after.most else NO_MARGIN
        self._straying = False
        if tag.text not in lost:
            return TAG, tag, space
        queue = self._queue  # the white space belongs to what is lost
        if space:
            queue.append((SPACE, None, space))
        queue += [(LOST, None, rule) for rule in lost[tag.text]]
        queue.append((TAG, tag, ""))
        return queue.pop(0)

    # Where only tags may stand

    def _between(self, final: bool) -> Lexeme | None:
        at = self._shown
        if self.table.ignore and not self._straying:
            at = _SPACE(self._buffer, at).end()  # type: ignore[union-attr]
            match = self.plan.match(self._buffer, at)
            if match is not None:
                return self._take(self.plan.tags[match[0]], at, match.end())
            if at > self._shown:
                self._scan = at
                return self._show(at, SPACE)
        found = self._search(final)
        if found is not None and found[1] == at:
            return self._take(*found)
        end = self._limit if found is None else found[1]
        if end > self._shown:
            self._straying = True
            self._scan = end
            return self._show(end, STRAY)
        return self._end_in_tag()

    # Common

    def _show(self, end: int, kind: Kind) -> Lexeme:
        self.offset = self._base + self._shown
        text = self._buffer[self._shown : end]
        self._shown = end
        if self._scan < end:
            self._scan = end
        return kind, None, text

    def _end_in_tag(self) -> Lexeme | None:
        if self._cut < 0:
            return None
        self._cut = -1
        return self._show(len(self._buffer), CUT)

    def _skip_margin(self, margin: Margin, final: bool) -> Lexeme | None:
        """The white space that belongs to the tag just passed. ``_skip`` is what more may come of it."""
        match, begun = _MARGIN_MATCH[margin.unit]
        at, left = self._shown, margin.most
        while left:
            found = match(self._buffer, at)
            if found is None:
                if final or begun(self._buffer, at) is None:
                    left = 0
                break
            at = found.end()
            left -= 1
        self._skip = Margin(margin.unit, left) if left else NO_MARGIN
        if at > self._shown:
            self._edge = at
            return self._show(at, SPACE)
        if left:
            self._trim()
        return None

    def _trim(self) -> None:
        """Drop what was handed on, and see whether the next chunk can be taken without looking."""
        keep = self._shown if self._partial < 0 else min(self._partial, self._shown)
        if keep:
            self._blank = self._line_is_blank(keep)
            self._previous = self._before(keep)
            self._buffer = self._buffer[keep:]
            self._base += keep
            self._shown -= keep
            self._edge = -1
            if self._stall is not None:
                self._stall = (*self._stall[:2], self._stall[2] - keep)
        self._scan = 0
        plan = self.plan
        self.plain = bool(
            plan.opaque
            and not self._buffer
            and self._skip is NO_MARGIN
            and plan.opaque_target == plan.index
            and not (plan.prose and (self._blank or self._previous == "`"))
        )
