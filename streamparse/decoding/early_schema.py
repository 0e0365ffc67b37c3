"""Schemas, compiled for early verdicts: what may still come of a value while it is read.

A ``Shape`` is what holds for one value: schemas that all hold (through ``$ref`` and ``allOf``), and unions of which one
branch has to. With the *kind* of the value, which its first character tells, it becomes a ``Plan``: a fault at once, or
what is to be checked of a value of this kind. The branches of other kinds are gone by then, so that most unions
(``anyOf: [{...}, {"type": "null"}]``) cost nothing at run time. Shapes and plans are made when they are first asked
for, and kept: schemas that refer to themselves are finite.

All of it is sound and not complete: what is not understood (``not``, ``if``, ``dependentRequired``, ``$dynamicRef``,
schemas with an ``$id`` inside others, a cycle of unions, a keyword that is written wrongly) is *cannot tell*, and
allows everything. ``oneOf`` is read as ``anyOf``. ``null`` as the value of a keyword is no keyword, ``nullable: true``
allows ``null``; apart from that a schema says what JSON Schema says, also where ``toolset`` reads its author's mind.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping
from typing import Any, Final

from streamparse.decoding.early_rules import (
    ARRAY,
    NULL,
    OBJECT,
    STRING,
    Fault,
    Refusal,
    Rule,
    joined,
    says,
)
from streamparse.decoding.toolset import resolve
from streamparse.events import IssueCode
from streamparse.rulewords import bound_words, type_words
from streamparse.wording import shown

_DEEP: Final = 48
"""Unions inside unions that are looked into; real ones take two or three."""

_BRANCHES: Final = 1024
"""Branches of a union that are looked at; of more it cannot be told."""

_HEAD: Final = 256
"""Characters of a string that are kept at least, to tell whether JSON stands in it."""


class Plan:
    """What is to be checked of a value of one kind. ``refusal`` says that the kind itself is wrong; ``unions`` hold the
    plans of the branches that are left, at least two each. A plan without checks is ``free``."""

    __slots__ = (
        "_fields",
        "_home",
        "_items",
        "_prefixed",
        "closing",
        "free",
        "head",
        "most",
        "openers",
        "refusal",
        "required",
        "rules",
        "unions",
        "watched",
        "words",
    )

    def __init__(
        self,
        home: Home,
        kind: int,
        rules: tuple[Rule, ...] = (),
        unions: tuple[tuple[Plan, ...], ...] = (),
        refusal: Refusal | None = None,
        openers: str = "",
    ) -> None:
        self._home = home
        self.rules = rules
        self.unions = unions
        self.refusal = refusal
        self.free = not (rules or unions or refusal or openers)
        self.openers = openers  # of the JSON that may stand in a string which as such is wrong
        self._fields: dict[str, Shape | None] = {}
        self._items: dict[int, Shape | None] = {}
        names = (name for rule in rules for name in rule.required)
        self.required = tuple(dict.fromkeys(names)) if kind == OBJECT else ()
        self.closing = tuple(rule for rule in rules if rule.members is not None or rule.least)
        self._prefixed = max((len(rule.prefix) for rule in rules), default=0)
        bounds = [each for rule in rules if (each := rule.most.get(kind)) is not None]
        self.most = min(bounds, default=None)
        self.words: tuple[str, ...] | None = None  # sorted
        self.head = 0
        self.watched = False
        if kind == STRING:
            self._plan_text()

    def _plan_text(self) -> None:
        sets = [set(rule.words) for rule in self.rules if rule.words is not None]
        plain = [union for union in self.unions if all(branch.only_words for branch in union)]
        sets += [{word for branch in union for word in branch.words or ()} for union in plain]
        self.unions = tuple(union for union in self.unions if union not in plain)
        if sets:
            self.words = tuple(sorted(set.intersection(*sets)))
        inner = [branch for union in self.unions for branch in union]
        longest = max(map(len, self.words or ("",)), default=0)
        self.head = max(longest + 1, _HEAD if self.openers else 0, *(branch.head for branch in inner), 1)
        mine = self.words is not None or self.most is not None or bool(self.openers)
        self.watched = mine or any(all(branch.watched for branch in union) for union in self.unions)

    @property
    def only_words(self) -> bool:
        """Whether nothing but the constants of a string is checked."""
        plain = self.words is not None and not (self.unions or self.openers or self.refusal)
        return plain and all(rule.plain_words for rule in self.rules)

    # Strings

    def prefix_fault(self, head: str, size: int) -> Fault | None:
        """What is wrong with every string that begins so: its first characters (``head`` of them at least, if there are
        so many), and how many there are."""
        words = self.words
        if words is not None:
            at = bisect_left(words, head)
            if at == len(words) or not words[at].startswith(head):
                return self._no_member()
        if self.most is not None and size > self.most:
            return says("maxLength", self.most)
        if self.openers and (first := head.lstrip()[:1]) and first not in self.openers:
            return self._refused()
        for union in self.unions:
            faults = [branch.prefix_fault(head, size) for branch in union]
            if None not in faults:
                return joined([fault for fault in faults if fault is not None])
        return None

    def _no_member(self) -> Fault:
        return Fault(IssueCode.NOT_IN_ENUM, self._member_words)

    def _member_words(self) -> list[str]:
        return [shown(each) for rule in self.rules for each in rule.members or ()] or list(map(shown, self.words or ()))

    def _refused(self) -> Fault:
        assert self.refusal is not None
        return self.refusal.fault(STRING)

    # Complete values

    def fault(self, value: Any) -> Fault | None:
        """What is wrong with a complete string or number."""
        if isinstance(value, str):
            if self.words is not None and not self._is_word(value):
                return self._no_member()
            if self.openers:
                return None if _holds_json(value, self.openers) else self._refused()
        for rule in self.rules:
            found = rule.text_fault(value) if isinstance(value, str) else rule.number_fault(value)
            if found is not None:
                return found
        for union in self.unions:
            faults = [branch.fault(value) for branch in union]
            if None not in faults:
                return joined([fault for fault in faults if fault is not None])
        return None

    def _is_word(self, value: str) -> bool:
        words = self.words or ()
        at = bisect_left(words, value)
        return at < len(words) and words[at] == value

    # Objects and arrays

    def field(self, key: str) -> Shape | None:
        """What holds for a member; None if nothing does."""
        try:
            return self._fields[key]
        except KeyError:
            pass
        schemas = [schema for rule in self.rules for schema in rule.schemas_of(key)]
        shape = self._home.shape(*schemas) if schemas else None
        if any(key in rule.properties for rule in self.rules):  # others could be any number
            self._fields[key] = shape
        return shape

    def forbids(self, key: str) -> Fault | None:
        """Whether no member of this name may stand here: it is not declared, and nothing else is allowed."""
        closed = [rule for rule in self.rules if rule.forbids(key)]
        if not closed:
            return None
        return Fault(IssueCode.EXTRA, lambda: [shown(name) for rule in closed for name in rule.properties])

    def counts(self, key: str) -> bool:
        """Whether a member counts for ``maxProperties``: the judge leaves undeclared ones out (B14)."""
        return any(rule.declares(key) for rule in self.rules) or not any(rule.properties for rule in self.rules)

    def item(self, index: int) -> Shape | None:
        """What holds for an item; None if nothing does."""
        index = min(index, self._prefixed)
        try:
            return self._items[index]
        except KeyError:
            pass
        schemas = [schema for rule in self.rules for schema in rule.schemas_at(index)]
        shape = self._items[index] = self._home.shape(*schemas) if schemas else None
        return shape

    def close_fault(self, value: Any) -> Fault | None:
        """What is wrong with a complete object or array, apart from missing and wrong members."""
        for rule in self.closing:
            if (found := rule.close_fault(value)) is not None:
                return found
        return None

    def too_many(self, kind: int) -> Fault:
        """There are more members or items than ``most``."""
        return says("maxItems" if kind == ARRAY else "maxProperties", self.most)

    def missing_fault(self, key: str) -> Fault:
        """A required member does not come."""
        shape = self.field(key)
        return Fault(IssueCode.MISSING, (lambda: ()) if shape is None else shape.allowed_words)


class Shape:
    """What holds for one value: schemas that all hold."""

    __slots__ = ("_home", "_parts", "_plans", "_schemas", "fitting")

    def __init__(self, home: Home, schemas: tuple[Any, ...]) -> None:
        self._home = home
        self._schemas = schemas
        self._plans: dict[int, Plan] = {}
        self.fitting: dict[frozenset[str], tuple[int, ...]] = {}  # the kinds that fit, by types (``early_text``)
        self._parts: tuple[list[Rule], list[list[Any]]] | None = None

    @property
    def parts(self) -> tuple[list[Rule], list[list[Any]]]:
        """The rules that hold, and the unions of which one branch has to."""
        if self._parts is None:
            self._parts = self._home.flattened(self._schemas)
        return self._parts

    def plan(self, kind: int) -> Plan:
        """What is to be checked of a value of this kind."""
        found = self._plans.get(kind)
        if found is None:
            self._plans[kind] = self._home.free  # a union that leads back here cannot be told
            found = self._plans[kind] = self._make(kind)
        return found

    def _make(self, kind: int) -> Plan:
        rules, unions = self.parts
        for rule in rules:
            if not rule.kinds & kind:
                return self._refuse(kind, rule.refusal)
        checks = [rule for rule in rules if rule.speaks_of(kind)]
        left: list[tuple[Plan, ...]] = []
        for union in unions:
            plans = self._home.branches(union, kind)
            alive = [plan for plan in plans if plan.refusal is None]
            if plans and not alive:
                refusals = [plan.refusal for plan in plans if plan.refusal is not None]
                values = tuple(value for each in refusals for value in each.values)
                return self._refuse(kind, Refusal(values, frozenset().union(*(each.types for each in refusals))))
            if len(alive) == 1:
                checks += alive[0].rules
                left += alive[0].unions
            elif not any(plan.free for plan in alive) and alive:
                left.append(tuple(alive))
        return Plan(self._home, kind, tuple(dict.fromkeys(checks)), tuple(left))

    def _refuse(self, kind: int, refusal: Refusal) -> Plan:
        return Plan(self._home, kind, refusal=refusal, openers=self._openers() if kind == STRING else "")

    def _openers(self) -> str:
        """What begins the JSON that the judge reads in a string, where no string but a container may stand (B14)."""
        kinds = ((OBJECT, "{"), (ARRAY, "["))
        return "".join(opener for kind, opener in kinds if self.plan(kind).refusal is None)

    @property
    def impossible(self) -> bool:
        """Whether no value at all may stand here."""
        return any(not rule.kinds for rule in self.parts[0])

    def allowed_words(self) -> list[str]:
        """What may stand here, in the words of an issue: constants, else types, a number with its bounds."""
        rules = [*self.parts[0]]
        for union in self.parts[1]:
            rules += [rule for branch in union[:_BRANCHES] for rule in self._home.shape(branch).parts[0]]
        values = [shown(each) for rule in rules for each in rule.members or ()]
        if values:
            return list(dict.fromkeys(values))
        bounds = next((words for rule in rules if (words := bound_words(rule.schema))), "")
        types = type_words({name for rule in rules for name in rule.types})
        return [f"{name} {bounds}" if bounds and name in ("integer", "number") else name for name in types]


class Home:
    """The schema of one tool, and the shapes that were made of it."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._kept: list[Any] = []  # schemas that were made here: their identity is a key
        self._shapes: dict[tuple[int, ...], Shape] = {}
        self._depth = 0
        named = root.get("$schema") if isinstance(root, Mapping) else None
        draft = named if isinstance(named, str) else "2020-12"
        self._lonely = "draft-0" in draft  # nothing beside a ``$ref`` counts
        self._prefixes = "2020-12" in draft  # ``prefixItems`` is a keyword
        self.free = Plan(self, NULL)
        old = "draft-03" in draft or "draft-04" in draft
        self.root = self.shape(True if old else root)

    def shape(self, *schemas: Any) -> Shape:
        """The shape of a value for which all these schemas hold."""
        key = tuple(map(id, schemas))
        found = self._shapes.get(key)
        if found is None:
            self._kept += schemas
            found = self._shapes[key] = Shape(self, schemas)
        return found

    def branches(self, union: list[Any], kind: int) -> list[Plan]:
        """The plans of a union's branches; of none, if that cannot be told."""
        if len(union) > _BRANCHES or self._depth > _DEEP:
            return []
        self._depth += 1
        try:
            return [self.shape(branch).plan(kind) for branch in union]
        finally:
            self._depth -= 1

    def flattened(self, schemas: tuple[Any, ...]) -> tuple[list[Rule], list[list[Any]]]:
        """Rules and unions of schemas that all hold."""
        rules: list[Rule] = []
        unions: list[list[Any]] = []
        seen: set[int] = set()
        todo = list(schemas)
        while todo:
            schema = todo.pop(0)
            if id(schema) in seen and not isinstance(schema, bool):
                continue
            seen.add(id(schema))
            if isinstance(schema, Mapping):
                self._flatten(schema, rules, unions, todo)
            elif schema is False:
                rules.append(Rule(False))
        return rules, unions

    def _flatten(self, schema: Mapping[str, Any], rules: list[Rule], unions: list[list[Any]], todo: list[Any]) -> None:
        if schema is not self._root and ("$id" in schema or "id" in schema):
            return  # what its references mean is another matter
        if schema.get("nullable") is True:
            rest = {key: value for key, value in schema.items() if key != "nullable"}
            unions.append([rest, _NULL])
            return
        ref = schema.get("$ref")
        if isinstance(ref, str):
            target = resolve(self._root, ref)
            todo.append(target)
            if self._lonely:
                return
        rules.append(Rule(schema, prefixes=self._prefixes))
        for keyword in ("allOf", "anyOf", "oneOf"):
            branches = schema.get(keyword)
            if isinstance(branches, list | tuple) and branches:
                if keyword == "allOf":
                    todo += branches
                else:
                    unions.append(list(branches))


_NULL: Final = {"type": "null"}


def _holds_json(text: str, openers: str) -> bool:
    if not text.lstrip().startswith(tuple(openers)):
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict if text.lstrip().startswith("{") else list)
