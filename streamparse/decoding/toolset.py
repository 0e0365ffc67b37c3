"""Tool definitions: the name of each tool and, for each declared parameter, what its schema says about types.

A definition is OpenAI-style JSON (``{"type": "function", "function": {...}}``), the flat form (``{"name",
"parameters"}``), Anthropic's (``{"name", "input_schema"}``), MCP's (``{"name", "inputSchema"}``), or any object with
``.name`` and ``.parameters``. A definition without a schema takes no parameters. One that has another ``type`` and no
name is a tool that the provider runs itself (``{"type": "web_search"}``): nobody declares what is called there, and it
is passed over, since requests list it beside the others.

What a schema says is an ``Allowed``: the types that it names, and whether it leaves the others open. The keywords of
one schema narrow each other, as in JSON Schema:

* ``type`` names types; a list of them is a union. ``number`` includes ``integer``.
* ``enum`` and ``const`` name the types of their values, and the values themselves (``1`` is an integer).
* ``anyOf`` and ``oneOf`` are unions, ``allOf`` and ``$ref`` (any JSON pointer into the tool's own parameters)
  intersections.
* ``nullable: true`` adds ``null`` to whatever the rest says, as its authors mean it, although OpenAPI would want
  ``null`` in an ``enum``, too.
* ``properties`` without any type means an object, ``items`` and ``prefixItems`` an array: JSON Schema would allow
  everything, but who writes them does not.

Everything else says nothing about types. Where schemas are doubtful, a call is still read, and validation judges it:

* An unknown type name, and a ``$ref`` that leads nowhere, leave the type open (T5).
* Keywords that contradict each other (``type: string`` with ``enum: [1]``): the first stands (``type`` before all).
* A cyclic ``$ref`` adds nothing to what is found on the way; a pure cycle leaves the type open (T5).
* ``true`` and ``{}`` leave the type open; so does ``false``, when nothing else is said.
* ``null`` as the value of a keyword is no keyword: many SDKs write it for what is absent.
* ``additionalProperties`` and ``patternProperties`` declare no parameter.

Parameters may also be declared through ``$ref``, ``allOf``, ``anyOf`` and ``oneOf`` at the top; a key that is
declared in several places has the union of the types that these name. What is no schema at all (``properties`` as a
list) is refused with its place, but only where the types depend on it: nothing looks into the properties of an object
parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple, NoReturn
from urllib.parse import unquote

from streamparse.errors import ToolDefinitionError

_MAX_SCHEMAS = 4096
"""Schemas that one parameter's types may be spread over. Unions of a few hundred constants are real; what refers to
itself in ever new ways would take exponential time. Beyond it the type is open."""

_VALUES_PER_SCHEMA = 16
"""So many values of an ``enum`` weigh as much as a schema: the longest real ones have some thousands."""

_MAX_DEPTH = 64
"""Schemas inside schemas, on the way to a type. Real ones take fewer than ten; walking them recurses."""

SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema")
"""Where a definition has its schema, in the order in which they are looked for."""

_OWN_TYPES = frozenset({"function", "custom"})
"""The ``type`` of definitions whose tool the caller runs."""

_TYPES: dict[str, frozenset[str]] = {
    "null": frozenset({"null"}),
    "boolean": frozenset({"boolean"}),
    "integer": frozenset({"integer"}),
    "number": frozenset({"integer", "number"}),
    "object": frozenset({"object"}),
    "array": frozenset({"array"}),
    "string": frozenset({"string"}),
}

_PYTHON_TYPES: tuple[tuple[Any, str], ...] = (
    (type(None), "null"),
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (Mapping, "object"),
    (list | tuple, "array"),
)
"""In this order: a Python ``bool`` is an ``int``."""


class Allowed(NamedTuple):
    """What a schema says about types: those that it names, whether it leaves the others open, and the values of its
    ``enum`` and ``const``."""

    types: frozenset[str]
    open: bool = False
    members: tuple[Any, ...] = ()

    def either(self, other: Allowed) -> Allowed:
        """The union."""
        return Allowed(self.types | other.types, self.open or other.open, self.members + other.members)

    def both(self, other: Allowed) -> Allowed:
        """The intersection; where it would be empty, ``self`` stands."""
        members = self.members + other.members
        if self.open and other.open:
            return Allowed(self.types | other.types, True, members)
        if self.open or other.open:
            return Allowed(other.types if self.open else self.types, False, members)
        return Allowed(self.types & other.types or self.types or other.types, False, members)


ANYTHING = Allowed(frozenset(), open=True)
_NOTHING = Allowed(frozenset())
_NULL = Allowed(_TYPES["null"])


class Declared(NamedTuple):
    """A tool: parameter name -> what its schema says, and the schema (None where there is none)."""

    parameters: dict[str, Allowed]
    schema: Any


def declared_tools(tools: Iterable[Any] | None) -> dict[str, Declared]:
    """The tools by name. ``None`` is no tools.

    Raises ``ToolDefinitionError`` for a definition without a name, a repeated name, or a schema that is none.
    """
    declared: dict[str, Declared] = {}
    places: dict[str, int] = {}
    for position, tool in enumerate(_listed(tools)):
        if is_provided(tool) and tool.get("name") is None:
            continue
        name, schema = _definition(tool, f"tools[{position}]")
        if name in declared:
            raise ToolDefinitionError(
                f"tools[{position}] repeats the name {name!r} of tools[{places[name]}]: rename one or leave one out"
            )
        places[name] = position
        reader = None if schema is None else _SchemaReader(schema, f"tools[{position}] {name!r}")
        declared[name] = Declared(reader.parameters() if reader else {}, schema)
    return declared


def allowed_by(schema: Mapping[str, Any] | bool, root: Mapping[str, Any]) -> Allowed:
    """What one schema says; ``root`` is what its ``$ref``s refer to. Raises as ``declared_tools`` does."""
    return _SchemaReader(root, "a tool").allowed(schema)


def _listed(tools: Iterable[Any] | None) -> Iterable[Any]:
    if tools is None:
        return ()
    if isinstance(tools, Mapping | str | bytes) or not isinstance(tools, Iterable):
        raise ToolDefinitionError(f"tools must be a list of tool definitions, not {_kind(tools)}")
    return tools


def _definition(tool: Any, place: str) -> tuple[str, Any]:
    """The name and the schema of one definition, whatever its form."""
    fields = definition_fields(tool)
    if fields is None:
        raise ToolDefinitionError(
            f"{place} is no tool definition ({_kind(tool)}): pass a mapping with 'name' and 'parameters' or "
            "'input_schema', or an object with .name and .parameters"
        )
    name = fields.get("name")
    if not isinstance(name, str) or not name.strip():
        found = "an empty string" if isinstance(name, str) else "missing" if name is None else _kind(name)
        raise ToolDefinitionError(f"{place}: its name is {found}: give it a non-empty string as 'name'")
    return name, next((schema for key in SCHEMA_KEYS if (schema := fields.get(key)) is not None), None)


def is_provided(tool: Any) -> bool:
    """Whether it is a provider's own tool: it has another ``type``, and no schema."""
    if not isinstance(tool, Mapping) or tool.get("function") is not None:
        return False
    kind = tool.get("type")
    return isinstance(kind, str) and kind not in _OWN_TYPES and all(tool.get(key) is None for key in SCHEMA_KEYS)


def definition_fields(tool: Any, *more: str) -> Mapping[str, Any] | None:
    """The fields of a definition in any form, ``more`` those that an object is asked for besides its name and schema;
    None for what is no definition."""
    if isinstance(tool, Mapping):
        function = tool.get("function")
        body = tool if function is None else function
        return body if isinstance(body, Mapping) else None
    if hasattr(tool, "name") and any(hasattr(tool, key) for key in SCHEMA_KEYS):
        return {key: getattr(tool, key, None) for key in ("name", *more, *SCHEMA_KEYS)}
    return None


class _Place(NamedTuple):
    """A piece of a schema, where it stands, and how one came there."""

    value: Any
    pointer: str = "#"
    refs: frozenset[str] = frozenset()
    depth: int = 0

    def inner(self, key: str | int) -> _Place:
        token = str(key).replace("~", "~0").replace("/", "~1")
        return _Place(self.value[key], f"{self.pointer}/{token}", self.refs, self.depth + 1)


class _SchemaReader:
    """Reads the schema of one tool. ``root`` is what ``#`` refers to, ``tool`` names the tool in errors."""

    def __init__(self, root: Any, tool: str) -> None:
        self._root = root
        self._tool = tool
        self._left = 0
        self._keywords: dict[str, Callable[[_Place], Allowed]] = {
            "type": self._type,
            "enum": self._enum,
            "$ref": lambda place: _union(self._allowed(target) for target in self._target(place)),
            "anyOf": lambda place: _union(self._allowed(branch) for branch in self._branches(place)),
            "oneOf": lambda place: _union(self._allowed(branch) for branch in self._branches(place)),
            "allOf": lambda place: reduce(Allowed.both, map(self._allowed, self._branches(place)), ANYTHING),
        }

    def parameters(self) -> dict[str, Allowed]:
        """What the schema says of each declared parameter; of several declarations, those that name types count."""
        self._left = _MAX_SCHEMAS
        declarations: dict[str, list[_Place]] = {}
        for key, place in self._declarations(_Place(self._root)):
            declarations.setdefault(key, []).append(place)
        return {key: self._declared(places) for key, places in declarations.items()}

    def allowed(self, schema: Any) -> Allowed:
        """What one schema says about types, wherever it stands."""
        self._left = _MAX_SCHEMAS
        return self._allowed(_Place(schema))

    def _declared(self, places: list[_Place]) -> Allowed:
        self._left = _MAX_SCHEMAS
        said = [self._allowed(place) for place in places]
        return _union([each for each in said if each.types] or said)

    def _declarations(self, place: _Place) -> Iterator[tuple[str, _Place]]:
        """Every parameter that the schema declares, with its schema; a key may come more than once."""
        schema = self._schema(place)
        if isinstance(schema, bool) or not self._spend(place):
            return
        if schema.get("properties") is not None:
            properties = place.inner("properties")
            for key in self._mapping(properties, "an object of schemas"):
                yield key, properties.inner(key)
        if schema.get("$ref") is not None:
            for target in self._target(place.inner("$ref")):
                yield from self._declarations(target)
        for keyword in ("allOf", "anyOf", "oneOf"):
            if schema.get(keyword) is not None:
                for branch in self._branches(place.inner(keyword)):
                    yield from self._declarations(branch)

    def _allowed(self, place: _Place) -> Allowed:
        """What the schema at ``place`` says about types."""
        schema = self._schema(place)
        if isinstance(schema, bool):
            return ANYTHING if schema else _NOTHING
        if not self._spend(place):
            return ANYTHING
        said = ANYTHING
        for keyword, read in self._keywords.items():
            if schema.get(keyword) is not None:
                said = said.both(read(place.inner(keyword)))
        if "const" in schema:
            said = said.both(_members([schema["const"]]))
        if not said.types:
            said = said.both(_inferred(schema))
        return said.either(_NULL) if schema.get("nullable") is True else said

    def _type(self, place: _Place) -> Allowed:
        if isinstance(place.value, str):
            return _named(place.value)
        names = self._list(place, "a type name or a list of type names")
        if not all(isinstance(name, str) for name in names):
            self._refuse(place, "a type name or a list of type names")
        return _union(map(_named, names))

    def _enum(self, place: _Place) -> Allowed:
        values = self._list(place, "a list of values")
        self._left -= len(values) // _VALUES_PER_SCHEMA
        return _members(values)

    def _target(self, place: _Place) -> Iterator[_Place]:
        """The schema that a ``$ref`` means: none when it is being followed already, ``true`` when it leads nowhere."""
        ref = place.value
        if not isinstance(ref, str):
            self._refuse(place, "a string")
        if ref not in place.refs:
            yield _Place(resolve(self._root, ref), ref, place.refs | {ref}, place.depth)

    def _branches(self, place: _Place) -> Iterator[_Place]:
        return map(place.inner, range(len(self._list(place, "a list of schemas"))))

    def _spend(self, place: _Place) -> bool:
        self._left -= 1
        return self._left >= 0 and place.depth <= _MAX_DEPTH

    def _schema(self, place: _Place) -> Mapping[str, Any] | bool:
        value = place.value
        return value if isinstance(value, bool) else self._mapping(place, "a schema (an object or a boolean)")

    def _mapping(self, place: _Place, expected: str) -> Mapping[str, Any]:
        value = place.value
        if not isinstance(value, Mapping):
            self._refuse(place, expected)
        if not all(isinstance(key, str) for key in value):
            self._refuse(place, "an object whose keys are strings", "one with other keys")
        return value

    def _list(self, place: _Place, expected: str) -> Sequence[Any]:
        value = place.value
        if not isinstance(value, list | tuple):
            self._refuse(place, expected)
        return value

    def _refuse(self, place: _Place, expected: str, found: str = "") -> NoReturn:
        where = f"{self._tool}: {place.pointer} of its parameters"
        raise ToolDefinitionError(f"{where} must be {expected}, not {found or _kind(place.value)}")


def _union(branches: Iterable[Allowed]) -> Allowed:
    return reduce(Allowed.either, branches, _NOTHING)


def _named(name: str) -> Allowed:
    return Allowed(_TYPES[name]) if name in _TYPES else ANYTHING


def _members(values: Sequence[Any]) -> Allowed:
    """What ``enum`` and ``const`` say: the types of their values, and the values."""
    return _union(_named(_json_type(value)) for value in values)._replace(members=tuple(values))


def _inferred(schema: Mapping[str, Any]) -> Allowed:
    """The types of a schema that names none but says what is inside."""
    types = frozenset[str]()
    if schema.get("properties") is not None:
        types |= _TYPES["object"]
    if schema.get("items") is not None or schema.get("prefixItems") is not None:
        types |= _TYPES["array"]
    return Allowed(types) if types else ANYTHING


def resolve(root: Any, ref: str) -> Any:
    """What the JSON pointer ``ref`` (``#/$defs/Limit``) points to; ``True``, any schema, if that is no schema."""
    if not ref.startswith("#") or ref[1:2] not in ("", "/"):
        return True
    value = root
    for token in unquote(ref[1:]).split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and key in value:
            value = value[key]
        elif isinstance(value, list | tuple) and key.isdecimal() and key.isascii() and int(key[:9]) < len(value):
            value = value[int(key[:9])]
        else:
            return True
    return value if isinstance(value, Mapping | bool) else True


def _json_type(value: Any) -> str:
    """The JSON type of a Python value, ``integer`` apart from ``number``; empty for what JSON cannot hold."""
    for kinds, name in _PYTHON_TYPES:
        if isinstance(value, kinds):
            return name
    return ""


def _kind(value: Any) -> str:
    """A value in the words of an error message: ``an array``, ``a Decimal``."""
    name = _json_type(value) or type(value).__name__
    return name if name == "null" else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
