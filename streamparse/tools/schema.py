"""One tool's schema: checked once, compiled once, and as a tree of nodes that can be walked beside the arguments.

jsonschema-rs decides what is valid. The tree is for what a validator does not tell: which fields are declared, which
branch was meant, where ``3.0`` means 3. Nodes are made when they are asked for and kept by their JSON pointer, so that
schemas that refer to themselves are finite; a ``$ref`` to anything but a JSON pointer or an anchor is left to the
validator.

Two liberties of SDKs are taken as they are meant, as the decoders do (``decoding.toolset``): ``null`` as the value of
a keyword is no keyword, and ``nullable: true`` allows ``null``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import unquote

from streamparse.decoding.toolset import Allowed, allowed_by
from streamparse.errors import ToolDefinitionError
from streamparse.tools.canonical import canonical
from streamparse.tools.wording import shown

if TYPE_CHECKING:
    from jsonschema_rs import KeywordValidator, ValidationError, Validator, ValidatorMap

_DEPTH = 64
"""Schemas inside schemas as they are written. Real ones have fewer than ten levels, and reading them recurses."""

_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
_LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMAS = frozenset(
    "items additionalItems additionalProperties unevaluatedItems unevaluatedProperties contains propertyNames not if "
    "then else".split()
)
_PADDED = 16
"""Names that differ only in zeros before the same digits, and are told apart."""

_DATA = frozenset({"const", "default"})  # null is a value there

_EXPECTED = {
    "type": "a type name (string, integer, number, boolean, null, object, array) or a list of different ones",
    "enum": "a list of values",
    "required": "a list of different strings",
    "pattern": "a regular expression",
    "$ref": "a reference into the same schema, such as '#/$defs/Name'",
    "$schema": "the address of a JSON Schema draft",
    **dict.fromkeys(_MAPS, "an object of schemas"),
    **dict.fromkeys(_LISTS, "a list of schemas"),
    **dict.fromkeys(_SCHEMAS, "a schema (an object or a boolean)"),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), "a number"),
    "multipleOf": "a number above 0",
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), "an integer from 0"),
    **dict.fromkeys(("minProperties", "maxProperties"), "an integer from 0"),
    **dict.fromkeys(("title", "description", "format", "$id"), "a string"),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), "true or false"),
}


class Schema:
    """A schema of arguments, ready for use. ``where`` names the tool in errors.

    Raises ``ToolDefinitionError``, with the place and what was expected, for a schema that is none, that refers to
    something that is not there, or whose type is not that of an object.
    """

    def __init__(self, parameters: Mapping[str, Any], where: str) -> None:
        self._where = where
        self._nodes: dict[str, Node] = {}
        self.document = self._read(parameters, "#", 0)
        self.validator = self._compile()
        self.root = self.node("#", self.document)
        allowed = self.root.allowed
        if allowed.types and not allowed.open and "object" not in allowed.types:
            self._refuse("#/type", "'object': arguments are an object", shown(self.document.get("type")))

    @cached_property
    def parts(self) -> ValidatorMap:
        """A validator for each schema in the document, by its pointer."""
        from jsonschema_rs import validator_map_for

        return validator_map_for(self.document, offline=True)

    @cached_property
    def unopened(self) -> ValidatorMap:
        """The same, with unions that are one error each: what is wrong in which branch is asked branch by branch.

        The validator itself would tell it for all branches at once, which for unions inside unions is exponential.
        """
        from jsonschema_rs import validator_map_for

        keywords = {keyword: _union_keyword(self, keyword) for keyword in ("anyOf", "oneOf")}
        return validator_map_for(self.document, offline=True, keywords=keywords)

    @cached_property
    def unions(self) -> dict[str, Node]:
        """The nodes that have unions, by the text of these: equal ones mean the same."""
        return {canonical(union): self.node(*place) for place, union in _unions(self.document, "#")}

    @cached_property
    def anchors(self) -> dict[str, Node]:
        """The nodes that have an ``$anchor``, by its name; in older drafts, an ``$id`` that begins with ``#``."""
        return {name: self.node(pointer, schema) for name, pointer, schema in _anchors(self.document, "#")}

    def known(self, pointer: str) -> Node | None:
        """The node at a pointer that a node gave."""
        return self._nodes.get(pointer)

    def node(self, pointer: str, schema: Any) -> Node:
        """The node of the schema that stands at ``pointer``."""
        node = self._nodes.get(pointer)
        if node is None:
            node = self._nodes[pointer] = Node(self, pointer, schema)
        return node

    def target(self, ref: str) -> Node | None:
        """The node that a ``$ref`` means; ``None`` if it leads to no schema of this document."""
        if not ref.startswith("#"):
            return None
        if ref[1:2] not in ("", "/"):
            return self.anchors.get(unquote(ref[1:]))
        value: Any = self.document
        pointer = "#"
        for token in ref[2:].split("/") if ref[1:] else ():
            key = unquote(token).replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and key in value:
                value = value[key]
            elif isinstance(value, list) and key.isascii() and key.isdecimal() and int(key[:9]) < len(value):
                value = value[int(key[:9])]
            else:
                return None
            pointer += f"/{_token(key)}"
        return self.node(pointer, value) if isinstance(value, dict | bool) else None

    def _read(self, schema: Any, pointer: str, depth: int) -> Any:
        """A copy of the schema in plain JSON types, without the liberties."""
        if not isinstance(schema, Mapping):
            return self._data(schema, pointer, depth)
        plain: dict[str, Any] = {}
        for key, value in schema.items():
            if not isinstance(key, str):
                self._refuse(pointer, "an object whose keys are strings", f"one with {shown(key)}")
            inner = f"{pointer}/{_token(key)}"
            if depth > _DEPTH:
                self._refuse(inner, f"nested at most {_DEPTH} deep", "more")
            if value is None and key not in _DATA:
                continue
            plain[key] = self._keyword(key, value, inner, depth)
        return _nullable(plain) if plain.get("nullable") is True else plain

    def _keyword(self, key: str, value: Any, pointer: str, depth: int) -> Any:
        if key in _MAPS and isinstance(value, Mapping):
            names = {name: each for name, each in value.items() if each is not None}
            for name in names:
                if not isinstance(name, str):
                    self._refuse(pointer, "an object whose keys are strings", f"one with {shown(name)}")
            return {name: self._read(each, f"{pointer}/{_token(name)}", depth + 1) for name, each in names.items()}
        if isinstance(value, list | tuple) and (key in _LISTS or key == "items"):
            return [self._read(each, f"{pointer}/{index}", depth + 1) for index, each in enumerate(value)]
        return self._read(value, pointer, depth + 1) if key in _SCHEMAS else self._data(value, pointer, depth)

    def _data(self, value: Any, pointer: str, depth: int) -> Any:
        if depth > 2 * _DEPTH:
            self._refuse(pointer, f"nested at most {_DEPTH} deep", "more")
        if isinstance(value, Mapping):
            return {
                self._key(key, pointer): self._data(each, f"{pointer}/{_token(key)}", depth + 1)
                for key, each in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._data(each, f"{pointer}/{index}", depth + 1) for index, each in enumerate(value)]
        if value is None or isinstance(value, str | bool | int | float):
            return value
        return self._refuse(pointer, "a JSON value", shown(value))

    def _key(self, key: Any, pointer: str) -> str:
        return key if isinstance(key, str) else self._refuse(pointer, "an object with string keys", shown(key))

    def _compile(self) -> Validator:
        from jsonschema_rs import ReferencingError, ValidationError, meta, validator_for

        if not isinstance(self.document, dict):
            self._refuse("#", "an object (a JSON Schema)", shown(self.document))
        try:
            meta.validate(self.document)
            return validator_for(self.document, offline=True)
        except (ValidationError, ReferencingError) as error:
            path = list(getattr(error, "instance_path", ()))
        except (ValueError, RecursionError):  # what no JSON text can hold: lone surrogates, NaN
            self._refuse("#", "JSON", "text or numbers that JSON cannot hold")
        return self._refuse_at(path)

    def _refuse_at(self, path: list[str | int]) -> NoReturn:
        if not path:
            path = next(self._dead_references(self.document, []), ["$schema"] if "$schema" in self.document else [])
        value: Any = self.document
        pointer = "#"
        outer = keyword = ""
        for step in path:
            key = next(iter(step_keys(value, step)), None)
            if key is None:
                break
            value = value[key]
            pointer += f"/{_token(key)}"
            outer, keyword = keyword, str(key)
        if outer == "type":
            keyword = "type"  # one of its names
        elif outer in _MAPS or outer in _LISTS:
            keyword = "not"  # a schema in it
        self._refuse(pointer, _EXPECTED.get(keyword, "what JSON Schema wants there"), shown(value))

    def _dead_references(self, schema: Any, path: list[str | int]) -> Iterator[list[str | int]]:
        """Where a ``$ref`` stands that leads nowhere."""
        if isinstance(schema, dict):
            ref = schema.get("$ref")
            if isinstance(ref, str) and self._leads_nowhere(ref):
                yield [*path, "$ref"]
            for key, value in schema.items():
                yield from self._dead_references(value, [*path, key])
        elif isinstance(schema, list):
            for index, value in enumerate(schema):
                yield from self._dead_references(value, [*path, index])

    def _leads_nowhere(self, ref: str) -> bool:
        return self.target(ref) is None if ref.startswith("#") else True

    def _refuse(self, pointer: str, expected: str, found: str) -> NoReturn:
        raise ToolDefinitionError(f"{self._where}: {pointer} of its parameters must be {expected}, not {found}")


class Node:
    """One schema of a document. What it holds are nodes, too."""

    def __init__(self, schema: Schema, pointer: str, value: Any) -> None:
        self.owner = schema
        self.pointer = pointer
        self.value: dict[str, Any] = value if isinstance(value, dict) else {}

    @cached_property
    def allowed(self) -> Allowed:
        """The types that may stand here, and the values of its enums: by the decoders' own reading."""
        return allowed_by(self.value, self.owner.document)

    @cached_property
    def properties(self) -> dict[str, Node]:
        """The fields that this schema itself declares."""
        return self._members("properties")

    @cached_property
    def patterns(self) -> list[tuple[Callable[[str], bool], Node]]:
        """Fields that are declared by a pattern: whether a name matches, and its schema. The validator's own matcher
        does it, whose time is bounded."""
        from jsonschema_rs import validator_for

        members = self._members("patternProperties")
        return [(validator_for({"pattern": pattern}).is_valid, node) for pattern, node in members.items()]

    @cached_property
    def rest(self) -> Node | bool | None:
        """What holds for every other field: a schema, open, closed; None where nothing is said."""
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            value = self.value.get(keyword)
            if isinstance(value, dict):
                return self._inner(keyword) if value else True
            if value is not None:
                return bool(value)
        return None

    @cached_property
    def together(self) -> list[Node]:
        """Schemas that hold at the same time: ``$ref`` and ``allOf``, and what conditions may add."""
        nodes = []
        ref = self.value.get("$ref")
        if isinstance(ref, str) and (target := self.owner.target(ref)):
            nodes.append(target)
        nodes += self.branches("allOf")
        nodes += [self._inner(keyword) for keyword in ("if", "then", "else") if keyword in self.value]
        for keyword in ("dependentSchemas", "dependencies"):  # the latter may also list names
            nodes += [node for node in self._members(keyword).values() if node.value]
        return nodes

    @cached_property
    def opaque(self) -> bool:
        """Whether it refers to something that is not looked into: what it declares is not known."""
        ref = self.value.get("$ref")
        lost = isinstance(ref, str) and self.owner.target(ref) is None
        return lost or "$dynamicRef" in self.value or "$recursiveRef" in self.value

    @cached_property
    def tags(self) -> dict[str, list[Any]]:
        """The fields, of it and of what holds together with it, that can only be one of some constants."""
        fields = [(key, each) for part in self.alike() for key, each in part.properties.items()]
        return {key: list(each.allowed.members) for key, each in fields if each.value.keys() & {"const", "enum"}}

    @cached_property
    def unions(self) -> list[list[Node]]:
        """Schemas of which one holds, for ``anyOf`` and ``oneOf`` each."""
        return [branches for keyword in ("anyOf", "oneOf") if (branches := self.branches(keyword))]

    def item(self, index: int) -> Node | None:
        """The schema of the item at ``index`` of an array, as far as this schema itself names one."""
        first = self.value.get("prefixItems")
        listed = "prefixItems"
        if first is None and isinstance(self.value.get("items"), list):
            first, listed = self.value["items"], "items"
        if isinstance(first, list) and index < len(first):
            return self._inner(listed, index)
        rest = "additionalItems" if listed == "items" else "items"
        return self._inner(rest) if isinstance(self.value.get(rest), dict) else None

    def alike(self) -> Iterator[Node]:
        """This schema and all that hold together with it, each once, unions not opened."""
        seen: set[str] = set()
        todo = [self]
        while todo:
            node = todo.pop()
            if node.pointer not in seen:
                seen.add(node.pointer)
                yield node
                todo += reversed(node.together)

    def reachable(self) -> Iterator[Node]:
        """The same, and the branches of their unions: all that may speak of a value here."""
        seen: set[str] = set()
        todo = [self]
        while todo:
            for node in todo.pop().alike():
                if node.pointer not in seen:
                    seen.add(node.pointer)
                    yield node
                    todo += [branch for union in node.unions for branch in union]

    def field(self, key: str) -> Node | None:
        """The schema of a field that is declared by this schema or together with it."""
        return next((node.properties[key] for node in self.alike() if key in node.properties), None)

    def requires(self, key: str) -> bool:
        """Whether a field must be there, by this schema or by what holds together with it."""
        return any(key in node.value.get("required", ()) for node in self.alike())

    def fits(self, value: Any) -> bool:
        """Whether ``value`` is valid here."""
        part = self.owner.parts.get(self.pointer)
        return part is None or part.is_valid(value)

    def errors(self, value: Any) -> Iterator[ValidationError]:
        """What is wrong with ``value``; a union in which no branch fits is one error. Paths begin here."""
        part = self.owner.unopened.get(self.pointer)
        return iter(()) if part is None else part.iter_errors(value)

    def follow(self, path: Sequence[str | int], names: Collection[str | int] = ()) -> Node | None:
        """The node that the validator came to on this way (an ``evaluation_path``) from here. ``names`` are those on
        the way through the value: where a step can mean several fields, it is that one."""
        pointer = self.pointer
        value: Any = self.value
        for step in path:
            keys = step_keys(value, step)
            if not keys:
                return None
            key = next((each for each in keys if each in names), keys[0])
            value = value[key]
            pointer += f"/{_token(key)}"
            if step == "$ref":
                target = self.owner.target(str(value))
                if target is None:
                    return None
                pointer, value = target.pointer, target.value
        return self.owner.node(pointer, value) if isinstance(value, dict) else None

    def _inner(self, *path: str | int) -> Node:
        value: Any = self.value
        for step in path:
            value = value[step]
        return self.owner.node(self.pointer + "".join(f"/{_token(step)}" for step in path), value)

    def _members(self, keyword: str) -> dict[str, Node]:
        value = self.value.get(keyword)
        return {key: self._inner(keyword, key) for key in value} if isinstance(value, dict) else {}

    def branches(self, keyword: str) -> list[Node]:
        """The schemas that are listed under ``anyOf``, ``oneOf`` or ``allOf``."""
        value = self.value.get(keyword)
        return [self._inner(keyword, index) for index in range(len(value))] if isinstance(value, list) else []


def _union_keyword(schema: Schema, keyword: str) -> type[KeywordValidator]:
    """``anyOf`` or ``oneOf`` for jsonschema-rs, in words of its own part validators.

    Its error says where the union stands: of keywords that are not its own, jsonschema-rs does not know the way.
    """

    class Union:
        def __init__(self, parent: Any, branches: Any, path: Any) -> None:
            node = schema.unions.get(canonical(branches))
            self._place = node.pointer if node else ""
            self._branches = node.branches(keyword) if node else []

        def validate(self, value: Any) -> None:
            fitting = sum(node.fits(value) for node in self._branches)
            if not fitting or (keyword == "oneOf" and fitting > 1):
                raise ValueError(self._place)

    return Union


def _unions(schema: Any, pointer: str) -> Iterator[tuple[tuple[str, Any], list[Any]]]:
    """Every list under ``anyOf`` and ``oneOf`` in a document, with the pointer and the text of what has it."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("anyOf", "oneOf") and isinstance(value, list):
                yield (pointer, schema), value
            yield from _unions(value, f"{pointer}/{_token(key)}")
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from _unions(value, f"{pointer}/{index}")


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    """What ``nullable: true`` means."""
    types = schema.get("type")
    if types is None:
        return schema if not (schema.keys() & {"$ref", *_LISTS, "enum", "const"}) else _or_null(schema)
    if "const" in schema or schema.keys() & {"$ref", *_LISTS}:
        return _or_null(schema)
    names = list(types) if isinstance(types, list) else [types]
    schema["type"] = names if "null" in names else [*names, "null"]
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    return schema


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Either this, or null; what others refer to stays where it is."""
    outer: dict[str, Any] = {
        key: schema.pop(key) for key in ("$defs", "definitions", "$schema", "description") if key in schema
    }
    del schema["nullable"]
    return {**outer, "anyOf": [schema, {"type": "null"}]}


def _anchors(schema: Any, pointer: str) -> Iterator[tuple[str, str, Any]]:
    """Every anchor in a document: its name, where its schema stands, and that schema."""
    if isinstance(schema, dict):
        for name in (schema.get("$anchor"), str(schema.get("$id", "")).partition("#")[2]):
            if isinstance(name, str) and name:
                yield name, pointer, schema
        for key, value in schema.items():
            if key not in _DATA and key not in ("enum", "examples"):
                yield from _anchors(value, f"{pointer}/{_token(key)}")
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from _anchors(value, f"{pointer}/{index}")


def step_keys(value: Any, step: str | int) -> list[str | int]:
    """The keys, or the index, that a step of the validator's paths can mean in ``value``, the likeliest first.

    It writes every step that consists of digits as a number, also the name of a field: ``007`` and ``7`` alike.
    """
    if isinstance(value, list):
        return [step] if isinstance(step, int) and step < len(value) else []
    if not isinstance(value, dict):
        return []
    digits = str(step)
    exact: list[str | int] = [digits] if digits in value else []
    if isinstance(step, str):
        return exact
    padded = (key for key in value if key[:1] == "0" and key != digits and _digits(key) == digits)
    return [*exact, *islice(padded, _PADDED)]


def _digits(key: str) -> str:
    return (key.lstrip("0") or "0") if key.isascii() and key.isdigit() else ""


def _token(key: Any) -> str:
    return str(key).replace("~", "~0").replace("/", "~1")
