"""A dialect's ``.lark`` file -> its state table. The only module that imports lark.

Lark reads the file and builds the LALR table. A *configuration* of that automaton is its stack of states. From each
start symbol the compiler walks every configuration that can occur, one terminal at a time, reducing at once where a
state can only reduce, so that a closing tag closes when it comes and not one token later. Configurations that behave
alike (same tags, same opaque text, same way out) are merged, and what is left is the small table that ``scanner.py``
runs on.

A grammar that cannot be streamed is refused here, with the reason: unbounded nesting, two kinds of opaque text in one
place, opaque text that is not starred, a tag that begins another tag, a regular expression as a tag, an ambiguity.
The cost (Lark's import, a few ten milliseconds of walking) is paid once per process and dialect."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path as FilePath

from lark import Lark
from lark.common import ParserConf
from lark.exceptions import LarkError
from lark.grammar import Rule, Symbol
from lark.lexer import PatternStr
from lark.parsers.lalr_analysis import LALR_Analyzer, Shift

from streamparse.decoding.table import (
    MARKS,
    NO_MARGIN,
    OPAQUE_WORDS,
    RULES,
    Margin,
    Recovery,
    Role,
    State,
    Table,
    Tag,
    Unit,
)
from streamparse.errors import GrammarError, UnknownDialectError

START_SYMBOLS = ("start", "resumed")
"""``start`` for an answer that begins with text, ``resumed`` for one that begins inside the reasoning (N1)."""

_MAX_CONFIGURATIONS = 20_000  # M2 has 1,834 (each list counts its first item apart); beyond this Lark is no help
_MAX_STACK = 100

_MARGIN_FORMS = (
    (re.compile(r"/\\n\{0,(\d+)\}/"), Unit.BREAK),
    (re.compile(r"/\(\[ \\t\]\*\\n\)\{0,(\d+)\}/"), Unit.LINE),
    (re.compile(r"/\\s\{0,(\d+)\}/"), Unit.SPACE),
)
_MARGIN_NAME = re.compile(r"(BEFORE|AFTER|HEAD|TAIL)_(\w+)")
_MENTION_NAME = re.compile(r"FOREIGN_\w+")

_Stack = tuple[int, ...]


def grammar_directory() -> FilePath:
    """Where the ``.lark`` files are: inside the installed package, or beside it in a checkout."""
    package = FilePath(__file__).resolve().parent.parent
    installed = package / "grammars"
    return installed if installed.is_dir() else package.parent / "grammars"


def dialects() -> list[str]:
    """The names of the dialects that come with the library, sorted."""
    return sorted(file.stem for file in grammar_directory().glob("*.lark"))


@cache
def load(dialect: str) -> Table:
    """The table of a dialect: a name from ``dialects()``, or the path of a ``.lark`` file.

    Raises ``UnknownDialectError`` for a name that no file has, ``GrammarError`` for a file that cannot be streamed.
    """
    file = FilePath(dialect) if dialect.endswith(".lark") else grammar_directory() / f"{dialect}.lark"
    if not file.is_file():
        raise UnknownDialectError(
            f"no dialect {dialect!r}; known are {', '.join(dialects())}, or give the path of a .lark file"
        )
    try:
        source = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise GrammarError(f"grammar {dialect!r} cannot be read: {error}") from error
    return compile_grammar(source, file.stem)


def compile_grammar(source: str, dialect: str) -> Table:
    """The table of a grammar given as text. Raises ``GrammarError`` with the dialect's name, the place and the
    reason."""
    return _Compiler(source, dialect).table()


@dataclass(slots=True)
class _Draft:
    """A configuration on its way to a state: what may come, by terminal, and the configuration behind it."""

    stack: _Stack
    exits: dict[str, _Stack] = field(default_factory=dict)
    may_end: bool = False


class _Compiler:
    """One compilation. The steps, in order: read, check the vocabulary, walk, merge, dress."""

    def __init__(self, source: str, dialect: str) -> None:
        self.dialect = dialect
        lark = self._read(source)
        self.literals: dict[str, str] = {}
        for terminal in lark.terminals:
            if terminal.name in lark.ignore_tokens:
                continue
            if not isinstance(terminal.pattern, PatternStr):
                self._refuse(f"terminal {terminal.name} is a regular expression; a tag must be a literal string")
            if terminal.pattern.flags:
                self._refuse(f"terminal {terminal.name} has flags; a tag is a literal string, matched as it is written")
            self.literals[terminal.name] = terminal.pattern.value
        definitions = {str(name): tree for name, (tree, _) in lark.grammar.term_defs}
        self.opaque = {name for name, tree in definitions.items() if tree is None}
        self.layout = {name: _literal(tree) for name, tree in definitions.items() if tree is not None}
        self.ignore = self._check_ignore(lark.ignore_tokens)
        self.rules = list(lark.rules)
        self._check_vocabulary()
        self._check_margins()
        self._check_recursion()
        self.openers, self.closers = self._edges()
        self.actions = self._analyse()

    def _refuse(self, reason: str) -> None:
        raise GrammarError(f"grammar {self.dialect!r}: {reason}")

    # Reading and checking

    def _read(self, source: str) -> Lark:
        try:
            starts = [name for name in START_SYMBOLS if re.search(rf"^{name}\s*:", source, re.MULTILINE)]
            if "start" not in starts:
                self._refuse("there is no rule 'start'")
            self.starts = starts
            return Lark(source, parser="lalr", start=starts, maybe_placeholders=False)
        except LarkError as error:
            raise GrammarError(f"grammar {self.dialect!r}: {error}") from error

    def _check_ignore(self, ignored: list[str]) -> bool:
        patterns = {self.layout.get(name, "") for name in ignored}
        if patterns - {r"/\s+/"}:
            self._refuse(r"%ignore may only be /\s+/: white space between tags")
        return bool(patterns)

    def _check_vocabulary(self) -> None:
        unknown = sorted(self.opaque - OPAQUE_WORDS.keys())
        if unknown:
            self._refuse(f"%declare of unknown terminal {unknown[0]}; known are {', '.join(sorted(OPAQUE_WORDS))}")
        for rule in self.rules:
            name = str(rule.origin.name)
            if not _is_helper(name) and name not in START_SYMBOLS and name.split("_")[0] not in RULES:
                self._refuse(f"unknown rule {name!r}; known are {', '.join(RULES)}, and _helpers")

    def _check_margins(self) -> None:
        """A terminal that is used in no rule is a margin of something, or another format's mark; else it is
        misspelt."""
        for name in self.layout.keys() - self.literals.keys():
            if not (_MARGIN_NAME.fullmatch(name) or _MENTION_NAME.fullmatch(name) or name.startswith("__")):
                self._refuse(f"terminal {name} is used in no rule, is no margin (BEFORE_ …) and no FOREIGN_ mark")
        kinds = {str(rule.origin.name).split("_")[0].upper() for rule in self.rules}
        for name in self.layout:
            found = _MARGIN_NAME.fullmatch(name)
            if found is None:
                continue
            known = kinds | self.literals.keys() if found[1] in ("BEFORE", "AFTER") else self.opaque
            if found[2] not in known:
                self._refuse(f"{name}: there is no {found[2]} in this grammar")

    def _check_recursion(self) -> None:
        """Unbounded nesting: a rule that can stand inside itself (a repetition's own helper may, it is a list)."""
        uses: dict[str, set[str]] = {}
        for rule in self.rules:
            origin = str(rule.origin.name)
            inner = {str(s.name) for s in rule.expansion if not s.is_term}
            uses.setdefault(origin, set()).update(inner - {origin} if origin.startswith("__") else inner)
        for name in uses:
            if name in _reachable(uses, name):
                self._refuse(f"unbounded nesting: rule {name!r} can stand inside itself (write a list as item*)")

    def _edges(self) -> tuple[dict[str, str], dict[str, str]]:
        """Which rule each tag opens and which it closes, seen through ``_helpers``."""
        by_origin: dict[str, list[Rule]] = {}
        for rule in self.rules:
            by_origin.setdefault(str(rule.origin.name), []).append(rule)
        openers: dict[str, str] = {}
        closers: dict[str, str] = {}
        for name, rules in by_origin.items():
            if _is_helper(name) or name in START_SYMBOLS:
                continue
            kind = name.split("_")[0]
            for rule in rules:
                if rule.expansion:
                    self._claim(openers, _edge_terminals(rule.expansion, by_origin, 0), kind)
                    self._claim(closers, _edge_terminals(rule.expansion, by_origin, -1), kind)
        for name in closers:  # in a variant without its opening tag the closing tag comes first
            openers.pop(name, None)
        return openers, closers

    def _claim(self, edges: dict[str, str], terminals: set[str], kind: str) -> None:
        for terminal in terminals - self.opaque - MARKS:
            if edges.setdefault(terminal, kind) != kind:
                self._refuse(f"tag {self.literals[terminal]!r} belongs to rules {edges[terminal]!r} and {kind!r}")

    def _analyse(self) -> Mapping[int, Mapping[str, tuple[object, object]]]:
        """Lark's LALR table. Strict: a shift/reduce conflict is an error, too."""
        analyzer = LALR_Analyzer(ParserConf(self.rules, {}, self.starts), strict=True)
        try:
            analyzer.compute_lalr()  # type: ignore[no-untyped-call]
        except LarkError as error:
            raise GrammarError(f"grammar {self.dialect!r} is ambiguous: {error}") from error
        table = analyzer.parse_table
        numbers = {state: number for number, state in enumerate(table.states)}
        self.start_states = {name: numbers[state] for name, state in table.start_states.items()}
        self.end_states = {name: numbers[state] for name, state in table.end_states.items()}
        return {
            numbers[state]: {
                str(name): (action, numbers[target] if action is Shift else target)
                for name, (action, target) in actions.items()
            }
            for state, actions in table.states.items()
        }

    # The automaton

    def _settle(self, stack: _Stack) -> _Stack:
        """Reduce while the top state can do nothing else."""
        while True:
            actions = self.actions[stack[-1]]
            choices = {id(target) for action, target in actions.values() if action is not Shift}
            if len(choices) != 1 or any(action is Shift for action, _ in actions.values()):
                return stack
            (rule,) = {id(target): target for _, target in actions.values()}.values()
            assert isinstance(rule, Rule)
            if str(rule.origin.name) in START_SYMBOLS:
                return stack
            stack = self._reduce(stack, rule)

    def _reduce(self, stack: _Stack, rule: object) -> _Stack:
        assert isinstance(rule, Rule)
        rest = stack[: len(stack) - len(rule.expansion)]
        _, target = self.actions[rest[-1]][str(rule.origin.name)]
        assert isinstance(target, int)
        return (*rest, target)

    def _shift(self, stack: _Stack, terminal: str) -> _Stack | None:
        """The configuration behind ``terminal``, or None where it may not come."""
        while True:
            found = self.actions[stack[-1]].get(terminal)
            if found is None:
                return None
            action, target = found
            if action is Shift:
                assert isinstance(target, int)
                return self._settle((*stack, target))
            stack = self._reduce(stack, target)

    def _ends(self, stack: _Stack) -> bool:
        """Whether the stream may end here."""
        while stack[-1] not in self.end_states.values():
            found = self.actions[stack[-1]].get("$END")
            if found is None or found[0] is Shift:
                return False
            stack = self._reduce(stack, found[1])
        return True

    def _walk(self) -> dict[_Stack, _Draft]:
        drafts: dict[_Stack, _Draft] = {}
        waiting: list[_Stack] = [(self.start_states[name],) for name in self.starts]
        while waiting:
            stack = waiting.pop()
            if stack in drafts:
                continue
            if len(drafts) >= _MAX_CONFIGURATIONS or len(stack) > _MAX_STACK:
                self._refuse("unbounded nesting: the stacks that can occur do not come to an end")
            draft = drafts[stack] = _Draft(stack, may_end=self._ends(stack))
            for terminal in (*self.literals, *sorted(self.opaque)):
                target = self._shift(stack, terminal)
                if target is not None:
                    draft.exits[terminal] = target
                    waiting.append(target)
        return drafts

    # From configurations to states

    def table(self) -> Table:
        drafts = self._walk()
        for draft in drafts.values():
            self._check_streamable(draft, drafts)
        ways = self._ways_out(drafts)
        classes = _merge(drafts, ways)
        members: dict[int, _Draft] = {}
        for stack, number in classes.items():
            members.setdefault(number, drafts[stack])
        states = [self._state(members[n], n, classes, ways) for n in range(len(members))]
        self._check_headers(states)
        states = [self._dress(state, states) for state in states]
        states = [replace(state, recoveries=tuple(_recoveries(state, states))) for state in states]
        starts = {name: classes[(self.start_states[name],)] for name in self.starts}
        return Table(self.dialect, tuple(states), starts, self.ignore)

    def _check_streamable(self, draft: _Draft, drafts: dict[_Stack, _Draft]) -> None:
        opaque = [name for name in draft.exits if name in self.opaque]
        if len(opaque) > 1:
            self._refuse(f"two kinds of opaque text in one place: {opaque[0]} and {opaque[1]}")
        for name in opaque:
            if name not in drafts[draft.exits[name]].exits:
                self._refuse(f"opaque text comes in fragments: write {name}*, not {name}")
        tags = sorted((self.literals[name], name) for name in draft.exits if name in self.literals)
        for text, name in tags:
            if self.ignore and not opaque and text[0].isspace():
                self._refuse(f"tag {text!r} ({name}) begins with white space, where white space is ignored")
        for (text, name), (longer, other) in pairwise(tags):
            if longer.startswith(text):
                self._refuse(f"tag {text!r} ({name}) begins tag {longer!r} ({other}) in the same place")

    def _check_headers(self, states: list[State]) -> None:
        """A call begins with its name or is a payload, an argument begins with its key."""
        begins = {"call": ("NAME", "NAME_ATTRIBUTES", "PAYLOAD"), "argument": ("KEY", "KEY_ATTRIBUTES")}
        for state in states:
            for tag in state.tags:
                kinds = begins.get(tag.rule) if tag.role is Role.OPEN else None
                if kinds and states[tag.target].opaque not in kinds:
                    self._refuse(f"behind {tag.text!r} a {tag.rule} must begin with {' or '.join(kinds)}")

    def _ways_out(self, drafts: dict[_Stack, _Draft]) -> dict[_Stack, tuple[str, ...]]:
        """The rules that are open in each configuration, outermost first: those that the shortest way to the end
        closes."""
        ways: dict[_Stack, tuple[str, ...]] = {stack: () for stack, draft in drafts.items() if draft.may_end}
        while len(ways) < len(drafts):
            found: dict[_Stack, tuple[str, ...]] = {}
            for stack, draft in drafts.items():
                if stack not in ways:
                    options = [
                        self._before_exit(name, ways[target]) for name, target in draft.exits.items() if target in ways
                    ]
                    if options:
                        found[stack] = min(options, key=len)
            if not found:
                self._refuse("a rule that is opened can never be closed")
            ways.update(found)
        return ways

    def _before_exit(self, name: str, behind: tuple[str, ...]) -> tuple[str, ...]:
        """The rules that are open before a terminal, from those behind it."""
        if name in self.closers:
            return (*behind, self.closers[name])
        return behind[:-1] if name in self.openers else behind

    def _state(
        self, draft: _Draft, number: int, classes: dict[_Stack, int], ways: dict[_Stack, tuple[str, ...]]
    ) -> State:
        opaque = next((name for name in draft.exits if name in self.opaque), "")
        tags = tuple(self._tag(name, classes[target]) for name, target in draft.exits.items() if name in self.literals)
        target = classes[draft.exits[opaque]] if opaque else number
        return State(number, ways[draft.stack], opaque, target, tags, (), (), draft.may_end)

    def _tag(self, name: str, target: int) -> Tag:
        opens, closes = self.openers.get(name), self.closers.get(name)
        if name in MARKS:
            role = Role.MARK
        else:
            role = Role.OPEN if opens else Role.CLOSE if closes else Role.INNER
        return Tag(
            self.literals[name],
            name,
            role,
            opens or closes or "",
            target,
            nonstandard=name.startswith("NONSTANDARD_"),
        )

    # Margins and mentions

    def _dress(self, state: State, states: list[State]) -> State:
        tags = tuple(self._dress_tag(tag, state, states) for tag in state.tags)
        return replace(state, tags=tags, mentions=tuple(self._mentions(state, states)))

    def _dress_tag(self, tag: Tag, state: State, states: list[State]) -> Tag:
        before, after = self._margins(tag, state, states)
        return replace(tag, before=before, after=after, bare=self._is_bare(tag, state))

    def _is_bare(self, tag: Tag, state: State) -> bool:
        """A call that opens where no envelope is open, in a dialect that has envelopes (N11)."""
        return tag.role is Role.OPEN and tag.rule == "call" and bool(state.opaque) and self._has_bare_rule()

    def _has_bare_rule(self) -> bool:
        return any(str(rule.origin.name) == "call_bare" for rule in self.rules)

    def _margins(self, tag: Tag, state: State, states: list[State]) -> tuple[Margin, Margin]:
        before, after = [], []
        behind = states[tag.target].opaque
        if tag.role is Role.OPEN:
            before.append(f"BEFORE_{tag.rule.upper()}")
        if tag.role is Role.CLOSE:
            before.append(f"TAIL_{state.opaque}")
            after.append(f"AFTER_{tag.rule.upper()}")
        elif behind:
            after.append(f"HEAD_{behind}")
        if tag.role is Role.MARK:
            after = [f"AFTER_{tag.terminal}"]
        return self._margin(before), self._margin(after)

    def _margin(self, names: list[str]) -> Margin:
        for name in names:
            pattern = self.layout.get(name)
            if pattern is not None:
                for form, unit in _MARGIN_FORMS:
                    match = form.fullmatch(pattern)
                    if match:
                        return Margin(unit, int(match[1]))
                self._refuse(rf"{name} must be /\n{{0,N}}/, /([ \t]*\n){{0,N}}/ or /\s{{0,N}}/, not {pattern}")
        return NO_MARGIN

    def _mentions(self, state: State, states: list[State]) -> Iterator[Tag]:
        """What is noticed in opaque text without being a tag there: other formats in text, the call's own tags in a
        value."""
        taken = {tag.text for tag in state.tags}
        if state.opaque == "TEXT":
            for name, literal in self.layout.items():
                if _MENTION_NAME.fullmatch(name) and literal not in taken:
                    yield Tag(literal, name, Role.MENTION, "", state.index)
        if state.opaque == "VALUE":
            seen = {
                (tag.text, tag.terminal, tag.rule)
                for other in states
                for tag in other.tags
                if tag.rule in ("calls", "call", "argument") and tag.text not in taken
            }
            for text, terminal, rule in sorted(seen):
                yield Tag(text, terminal, Role.MENTION, rule, state.index)


def _literal(tree: object) -> str:
    """The source of a terminal's definition: the text of a string, or a pattern with its slashes."""
    tokens = list(tree.scan_values(lambda _: True))  # type: ignore[attr-defined]
    text = "".join(str(token) for token in tokens)
    if text.startswith('"'):
        return text[1:-1].encode("raw_unicode_escape").decode("unicode_escape")
    return text


def _is_helper(name: str) -> bool:
    return name.startswith("_")


def _reachable(uses: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = list(uses.get(start, ()))
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(uses.get(name, ()))
    return seen


def _edge_terminals(expansion: Sequence[Symbol], by_origin: Mapping[str, list[Rule]], edge: int) -> set[str]:
    """The terminals that can stand first (edge 0) or last (-1) in an expansion, looking through helpers."""
    symbol = expansion[edge]
    if symbol.is_term:
        return {str(symbol.name)}
    name = str(symbol.name)
    if not _is_helper(name):
        return set()
    found: set[str] = set()
    for rule in by_origin[name]:
        if rule.expansion and str(rule.expansion[edge].name) != name:
            found |= _edge_terminals(rule.expansion, by_origin, edge)
    return found


def _merge(drafts: dict[_Stack, _Draft], ways: dict[_Stack, tuple[str, ...]]) -> dict[_Stack, int]:
    """Number the configurations so that those that behave alike share a number (partition refinement)."""
    classes: dict[_Stack, int] = dict.fromkeys(drafts, 0)
    count = 1
    while True:
        signatures: dict[object, int] = {}
        refined: dict[_Stack, int] = {}
        for stack, draft in drafts.items():
            exits = frozenset((name, classes[target]) for name, target in draft.exits.items())
            signature = (exits, draft.may_end, ways[stack])
            refined[stack] = signatures.setdefault(signature, len(signatures))
        classes = refined
        if len(signatures) == count:
            return classes
        count = len(signatures)


def _recoveries(state: State, states: list[State]) -> Iterator[Recovery]:
    """Tags of the enclosing states, for a state where only tags may stand (see ``Recovery``). In a call that is one
    JSON object, the opening tag of the next call: the object itself may be complete."""
    if state.opaque == "PAYLOAD":
        closers = [tag for tag in state.tags if tag.role is Role.CLOSE]
        for closer in closers:
            for tag in states[closer.target].tags:
                if tag.role is Role.OPEN and tag.rule == closer.rule:
                    yield Recovery(tag, (closer.rule,))
    if state.opaque:
        return
    taken = {tag.text for tag in state.tags}
    lost: list[str] = []
    here = state
    while True:
        way_out = (
            next((tag for tag in here.tags if tag.role is Role.CLOSE and tag.rule == here.open[-1]), None)
            if here.open
            else None
        )
        if way_out is None:
            return
        lost.append(way_out.rule)
        here = states[way_out.target]
        for tag in here.tags:
            if tag.text not in taken and (not here.opaque or tag.role is Role.CLOSE):
                taken.add(tag.text)
                yield Recovery(tag, tuple(lost))
        if here.opaque:
            return
