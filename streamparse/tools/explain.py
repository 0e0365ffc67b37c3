"""What jsonschema-rs found wrong, as issues: one for each thing to change, in the order of their paths.

Of a union only the branch that was meant is reported; where every branch wants another kind of value, one issue names
them all. Texts come from the schema and from the value at the place itself, never from the validator's messages, which
quote whole objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from streamparse.events import Level, Path, json_text
from streamparse.rulewords import BOUNDS, RULE_WORDS, bound_words, type_words
from streamparse.tools.branches import Undecided, accepts, meant_branches, undecided
from streamparse.tools.issues import Ignored, Issue, IssueCode
from streamparse.tools.names import meant, nearest
from streamparse.tools.schema import Node, Schema, step_keys
from streamparse.tools.wording import VALUE, clip, counted, listed, plain, shown, type_word

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

ALLOWED = 8
"""Allowed values or types that an issue lists; the nearest ones of a longer list."""

_LISTED = 64
"""Issues of one call that are made; a model that got more wrong has misread the tool."""

_LOOKED = 16 * _LISTED
"""Errors of one call that are looked at: several may be one issue."""

_COMPARED = 256
"""Undeclared fields that are compared with the name of a missing one."""

_WAYS = 64
"""Places of one error that are compared with its value, where the names of fields leave several."""

_UNIONS = frozenset({"anyOf", "oneOf"})


class Explainer:
    """Turns the errors of one value into issues.

    ``ignored`` are fields that were taken out of the value: a missing one may have been meant by them.
    """

    def __init__(self, schema: Schema, value: Any, ignored: Iterable[Ignored]) -> None:
        self._schema = schema
        self._value = value
        self._drifted: dict[Path, str] = {
            (*each.path[:-1], each.meant): str(each.path[-1]) for each in ignored if each.meant is not None
        }
        self._found: dict[tuple[IssueCode, Path, tuple[str, ...]], Issue] = {}
        self._more = 0
        self._looked = 0

    def issues(self) -> tuple[list[Issue], int]:
        """The issues, sorted, without repetitions: the first ones of very many, and how many were left out."""
        for issue in self._inside(self._schema.root, self._value, ()):
            self._found.setdefault((issue.code, issue.path, issue.allowed), issue)
        return sorted(self._found.values(), key=order), self._more

    def _full(self, count: int = 1) -> bool:
        """Whether so many further errors are only counted: making issues of them costs more than finding them."""
        if len(self._found) < _LISTED and self._looked < _LOOKED:
            self._looked += 1
            return False
        self._more += count
        return True

    def _inside(self, node: Node, value: Any, path: Path) -> Iterator[Issue]:
        """The issues of ``value``, which stands at ``path``, by the schema of ``node``."""
        for error in node.errors(value):
            if self._full():
                continue
            kind = error.kind.name
            here = (*path, *_place(value, error))
            details = error.kind.as_dict()
            if kind in _UNIONS and (owner := self._schema.known(details["message"])):
                yield from self._union(owner, kind, here)
            elif kind in _EACH:
                yield from _EACH[kind](self, node.follow(error.evaluation_path[:-1], here), here, details)
            else:
                code, words = RULE_WORDS.get(kind, (IssueCode.UNFIT, None))
                yield self._issue(code, here, [words(_limit(details)) if words else _rule(kind)])

    def _union(self, parent: Node, keyword: str, path: Path) -> Iterator[Issue]:
        value = self._at(path)
        branches = parent.branches(keyword)
        fitting = sum(node.fits(value) for node in branches) if keyword == "oneOf" else 0
        if fitting:
            names = listed([shown(key) for key in _alternatives(branches)], 0, 2 * VALUE)
            forms = names or f"the {counted(len(branches), 'form')}"
            words = f"exactly one of {forms}, not {fitting} at once"
            yield self._issue(IssueCode.AMBIGUOUS, path, [words])
        elif all(_refuses(node, value) for node in branches):
            yield self._refused(branches, path)
        elif unknown := undecided(branches, value):
            yield self._undecided(unknown, path)
        elif keys := _alternatives(branches):
            yield self._alternative(keys, parent, path)
        else:
            for node in meant_branches(branches, value)[:1]:
                yield from self._inside(node, value, path)

    def _undecided(self, unknown: Undecided, path: Path) -> Issue:
        """One issue where nothing says which branch it is: all that may stand there."""
        key, values = unknown
        place = (*path, key)
        if key in self._at(path):
            return self._constants(place, values)
        words = [_constant(each) for each in values]
        return self._missing(path, key, words, self._drifted.get(place))

    def _alternative(self, keys: list[str], parent: Node, path: Path) -> Issue:
        """One of several fields is needed: the one that was perhaps meant by another name, else the first."""
        drifted = {key: self._drifted.get((*path, key)) or self._resembling(path, key, parent) for key in keys}
        key = next((key for key in keys if drifted[key]), keys[0])
        field = self._field(path, key, parent)
        others = listed([shown(each) for each in keys if each != key], 0, VALUE)
        hint = "" if drifted[key] else f"or {others} in its place"
        return self._missing(path, key, allowed_words(field) if field else [], drifted[key], hint)

    def _constants(self, path: Path, values: list[Any]) -> Issue:
        """Something else than the constants that may stand here."""
        fits = type_word(self._at(path)) in {type_word(each) for each in values}
        words = [_constant(each) for each in self._nearest(values, path)]
        return self._issue(IssueCode.NOT_IN_ENUM if fits else IssueCode.WRONG_TYPE, path, words, values)

    def _refused(self, branches: list[Node], path: Path) -> Issue:
        """One issue where each branch refuses the value as a whole: all types and constants together."""
        kind = type_word(self._at(path))
        values = [each for node in branches for each in node.allowed.members]
        types = {name for node in branches if not node.allowed.members for name in node.allowed.types}
        fits = any(type_word(each) == kind for each in values)
        words = [*map(_constant, self._nearest(values, path)), *type_words(types)]
        return self._issue(IssueCode.NOT_IN_ENUM if fits else IssueCode.WRONG_TYPE, path, words, values)

    def _enum(self, parent: Node | None, path: Path, details: Mapping[str, Any]) -> Iterator[Issue]:
        values = details["options"] if "options" in details else [details["expected_value"]]
        yield self._constants(path, values)

    def _type(self, parent: Node | None, path: Path, details: Mapping[str, Any]) -> Iterator[Issue]:
        members = parent.allowed.members if parent else ()
        words = [_constant(each) for each in members] or list(details["types"])
        yield self._issue(IssueCode.WRONG_TYPE, path, words)

    def _required(self, parent: Node | None, path: Path, details: Mapping[str, Any]) -> Iterator[Issue]:
        key: str = details["property"]
        field = self._field(path, key, parent)
        drifted = self._drifted.get((*path, key)) or self._resembling(path, key, parent)
        yield self._missing(path, key, allowed_words(field) if field else [], drifted)

    def _field(self, path: Path, key: str, parent: Node | None) -> Node | None:
        return (parent and parent.field(key)) or (None if path else self._schema.root.field(key))

    def _missing(self, path: Path, key: str, words: list[str], drifted: str | None, hint: str = "") -> Issue:
        hint = by_another_name(drifted) if drifted else hint
        listed_ = tuple(words[:ALLOWED])
        return Issue(IssueCode.MISSING, (*path, key), allowed=listed_, more=len(words[ALLOWED:]), hint=hint)

    def _resembling(self, path: Path, key: str, parent: Node | None) -> str | None:
        """An undeclared field of the same object whose name was probably meant for ``key``."""
        value = self._at(path)
        if not isinstance(value, Mapping) or parent is None:
            return None
        names = (name for name in value if parent.field(name) is None)
        return meant(key, list(islice(names, _COMPARED)))

    def _extra(self, parent: Node | None, path: Path, details: Mapping[str, Any]) -> Iterator[Issue]:
        names = [name for part in parent.alike() for name in part.properties] if parent else []
        for index, key in enumerate(details["unexpected"]):
            if self._full(len(details["unexpected"]) - index):
                return
            likely = meant(key, names)
            hint = f"did you mean {shown(likely)}?" if likely else ""
            words = [shown(name) for name in nearest(key, names)]
            yield self._issue(IssueCode.EXTRA, (*path, key), words[:ALLOWED], words, hint)

    def _name(self, parent: Node | None, path: Path, details: Mapping[str, Any]) -> Iterator[Issue]:
        yield self._issue(IssueCode.BAD_NAME, path, ["field names that follow the schema's 'propertyNames'"])

    def _bounds(self, parent: Node | None, path: Path, details: Mapping[str, Any]) -> Iterator[Issue]:
        """A number out of range: both ends are told, so that the next guess is not beyond the other one."""
        yield self._issue(IssueCode.OUT_OF_RANGE, path, [bound_words(parent.value)] if parent else [])

    def _nearest(self, values: list[Any], path: Path) -> list[Any]:
        """A long list as the entries nearest to the value, which come in their own order."""
        if len(values) <= ALLOWED:
            return values
        value = self._at(path)
        if isinstance(value, str):
            best = nearest(value, dict.fromkeys(each for each in values if isinstance(each, str)))[:ALLOWED]
            return [each for each in values if each in best][:ALLOWED] or values[:ALLOWED]
        if isinstance(value, int | float) and all(isinstance(each, int | float) for each in values):
            return sorted(sorted(values, key=lambda each: abs(each - value))[:ALLOWED])
        return values[:ALLOWED]

    def _issue(
        self, code: IssueCode, path: Path, words: list[str], whole: list[Any] | Any = None, hint: str = ""
    ) -> Issue:
        value = self._at(path)
        listed = tuple(words[:ALLOWED])
        more = max(len(whole or words), len(words)) - len(listed)
        if code is IssueCode.NOT_IN_ENUM and isinstance(value, str) and not hint:
            likely = meant(value, [each for each in whole or () if isinstance(each, str)])
            hint = f"did you mean {shown(likely)}?" if likely else ""
        if value is None and code in (IssueCode.WRONG_TYPE, IssueCode.NOT_IN_ENUM) and self._is_optional(path):
            hint = "leave it out if there is no value"
        level = Level.REPRESENTATION if code is IssueCode.WRONG_TYPE else Level.SCHEMA
        return Issue(code, path, type_word(value), shown(value), listed, more, hint, level)

    def _is_optional(self, path: Path) -> bool:
        """Whether the field at ``path`` is declared and need not be there, as far as it can be told."""
        node: Node | None = self._schema.root
        for step in path[:-1]:
            node = node and (node.item(step) if isinstance(step, int) else node.field(step))
        key = path[-1] if path else 0
        return isinstance(key, str) and node is not None and node.field(key) is not None and not node.requires(key)

    def _at(self, path: Path) -> Any:
        value = self._value
        for step in path:
            value = value[step]
        return value


def allowed_words(node: Node) -> list[str]:
    """What may stand at a node: its constants, else its types, a number with its bounds."""
    members = [_constant(each) for part in node.alike() for each in part.allowed.members]
    if members:
        return list(dict.fromkeys(members))
    bounds = bound_words(node.value)
    types = type_words(node.allowed.types)
    return [f"{name} {bounds}" if bounds and name in ("integer", "number") else name for name in types]


def by_another_name(name: str) -> str:
    """The hint of a missing field that was perhaps sent by another name."""
    return f"did you mean it by {shown(name)}?"


def order(issue: Issue) -> tuple[Any, ...]:
    """Issues are sorted by path, indexes as numbers; then by code."""
    return tuple((isinstance(step, str), step) for step in issue.path), issue.code, issue.allowed


def _constant(value: Any) -> str:
    """A value of the schema, which may be shown whole."""
    return clip(plain(json_text(value)), VALUE) if isinstance(value, dict | list) else shown(value)


def _alternatives(branches: list[Node]) -> list[str]:
    """The fields of which one is needed, where the branches say nothing else; empty where they do."""
    required = [node.value.get("required") for node in branches if not node.value.keys() - {"required"}]
    keys = [each[0] for each in required if isinstance(each, list) and len(each) == 1]
    return keys if len(keys) == len(branches) else []


def _refuses(node: Node, value: Any) -> bool:
    """Whether a branch has no use for the value at all: neither its type nor one of its constants."""
    if not accepts(node, value):
        return True
    constants = node.allowed.members
    return bool(constants) and not isinstance(value, dict | list) and value not in constants


def _place(value: Any, error: ValidationError) -> Path:
    """The path of an error in ``value``. The validator leaves out keys that are empty; they are put back."""
    ways = _ways(value, tuple(error.instance_path), ())
    first = next(ways)
    others = list(islice(ways, _WAYS))
    for path, found in (first, *others) if others else ():
        if type(found) is type(error.instance) and found == error.instance:
            return path
    return first[0]


def _ways(value: Any, steps: Path, path: Path) -> Iterator[tuple[Path, Any]]:
    """The places that a path of the validator can mean, the likeliest first; the last resort is as far as one gets."""
    keys = step_keys(value, steps[0]) if steps else []
    if not steps:
        yield path, value
    for key in keys:
        yield from _ways(value[key], steps[1:], (*path, key))
    if isinstance(value, dict) and "" in value:
        yield from _ways(value[""], steps, (*path, ""))
    elif steps and not keys:
        yield path, value


def _rule(keyword: str) -> str:
    return f"what '{clip(plain(keyword), VALUE)}' asks for"


def _limit(details: Mapping[str, Any]) -> Any:
    return next((value for key, value in details.items() if key != "name"), "")


_EACH: dict[str, Callable[[Explainer, Node | None, Path, Mapping[str, Any]], Iterator[Issue]]] = {
    "type": Explainer._type,
    "enum": Explainer._enum,
    "const": Explainer._enum,
    "required": Explainer._required,
    "additionalProperties": Explainer._extra,
    "unevaluatedProperties": Explainer._extra,
    "propertyNames": Explainer._name,
    **dict.fromkeys(BOUNDS, Explainer._bounds),
}
