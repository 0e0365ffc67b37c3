"""A tool: its name, what it is for, what it takes, and what running it does.

``Tool.of`` reads every form in which tools are written down (OpenAI-style, Anthropic-style, MCP), ``functions`` makes
one from a typed Python function. A tool whose schema is broken is refused when it is defined, with the place, and not
when a model calls it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

from streamparse.decoding.toolset import SCHEMA_KEYS, definition_fields, is_provided
from streamparse.errors import ToolDefinitionError
from streamparse.events import json_text
from streamparse.tools.schema import Schema
from streamparse.tools.wording import shown

Effect: TypeAlias = Literal["read", "write", "external"]
"""What running a tool does: ``read`` changes nothing, ``write`` changes something here, ``external`` something
elsewhere, which cannot be undone. All but ``read`` count as writes wherever a call is in doubt (B15)."""

_EFFECTS = get_args(Effect)
_HINTS = {"idempotent": "idempotentHint", "destructive": "destructiveHint", "open_world": "openWorldHint"}


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a model may call.

    ``parameters`` is the JSON Schema of its arguments, an object. ``effect`` is ``"write"`` unless somebody says
    otherwise. ``idempotent``, ``destructive`` and ``open_world`` are MCP's hints; None where nothing is known.
    ``strict`` is that of OpenAI-style definitions: whether the model is held to the schema.
    ``function`` is what ``call`` runs, and ``convert`` turns JSON arguments into its keyword arguments.

    The parameters are copied. Decoders take tools as they are: ``compile_tools([tool])``. Raises
    ``ToolDefinitionError`` for an empty name, an unknown effect, or a schema that is none.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}}, hash=False)
    effect: Effect = "write"
    idempotent: bool | None = None
    destructive: bool | None = None
    open_world: bool | None = None
    strict: bool | None = None
    function: Callable[..., Any] | None = field(default=None, compare=False, repr=False)
    convert: Callable[[Mapping[str, Any]], dict[str, Any]] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise ToolDefinitionError(f"a tool needs a non-empty string as its name, not {shown(self.name)}")
        if not isinstance(self.description, str):
            raise ToolDefinitionError(f"tool {shown(self.name)}: its description must be text")
        if self.effect not in _EFFECTS:
            wanted = ", ".join(_EFFECTS)
            raise ToolDefinitionError(
                f"tool {shown(self.name)}: its effect must be one of {wanted}, not {shown(self.effect)}"
            )
        Schema(self.parameters, f"tool {shown(self.name)}")
        object.__setattr__(self, "parameters", _copied(self.parameters))

    @classmethod
    def of(cls, definition: Any, *, effect: Effect | None = None) -> Tool:
        """The tool that ``definition`` describes.

        It is OpenAI-style JSON (``{"type": "function", "function": {"name", "description", "parameters"}}``, or the
        inner object alone), Anthropic-style (``{"name", "description", "input_schema"}``), MCP's (``{"name",
        "description", "inputSchema", "annotations"}``), an object with such attributes, or a ``Tool``. ``effect``
        overrides what MCP's ``readOnlyHint`` (``"read"``) and ``openWorldHint`` (``"external"``) say; without either
        it is ``"write"``.
        """
        if isinstance(definition, Tool):
            return definition if effect is None else replace(definition, effect=effect)
        fields = _fields(definition)
        hints = _annotations(fields.get("annotations"))
        schema = next((fields[key] for key in SCHEMA_KEYS if fields.get(key) is not None), None)
        said = {} if schema is None else {"parameters": schema}
        description = fields.get("description")
        return cls(
            fields.get("name"),  # type: ignore[arg-type]  # it is checked there
            "" if description is None else description,
            **said,
            effect=effect or _effect(hints),
            idempotent=_flag(hints, "idempotentHint"),
            destructive=_flag(hints, "destructiveHint"),
            open_world=_flag(hints, "openWorldHint"),
            strict=_flag(fields, "strict"),
        )

    def call(self, arguments: Mapping[str, Any]) -> Any:
        """Run the function; for an async one, the awaitable. The arguments must have been judged.

        Raises ``ToolDefinitionError`` if the tool has no function, and whatever the function raises.
        """
        if self.function is None:
            raise ToolDefinitionError(f"tool {shown(self.name)} has no function to call")
        return self.function(**(self.convert(arguments) if self.convert else arguments))

    def to_openai(self) -> dict[str, Any]:
        """As an entry of ``tools`` in an OpenAI-style request."""
        function: dict[str, Any] = {
            "name": self.name,
            "description": self.description,
            "parameters": deepcopy(self.parameters),
        }
        if self.strict is not None:
            function["strict"] = self.strict
        return {"type": "function", "function": function}

    def to_anthropic(self) -> dict[str, Any]:
        """As an entry of ``tools`` in an Anthropic-style request."""
        return {"name": self.name, "description": self.description, "input_schema": deepcopy(self.parameters)}

    def to_mcp(self) -> dict[str, Any]:
        """As an entry of MCP's ``tools/list``."""
        hints: dict[str, Any] = {"readOnlyHint": self.effect == "read"}
        hints |= {hint: value for name, hint in _HINTS.items() if (value := getattr(self, name)) is not None}
        if self.effect == "external":
            hints["openWorldHint"] = True
        return {
            "name": self.name,
            "description": self.description,
            "inputSchema": deepcopy(self.parameters),
            "annotations": hints,
        }


def as_tools(tools: Iterable[Any]) -> dict[str, Tool]:
    """Tools in any form, by name. Raises ``ToolDefinitionError`` with the position in the list, also for a name that
    comes twice."""
    if isinstance(tools, Mapping | str | bytes) or not isinstance(tools, Iterable):
        raise ToolDefinitionError(f"tools must be a list of tool definitions, not {shown(tools)}")
    known: dict[str, Tool] = {}
    for position, definition in enumerate(tools):
        try:
            tool = Tool.of(definition)
        except ToolDefinitionError as error:
            raise ToolDefinitionError(f"tools[{position}]: {error}") from None
        if tool.name in known:
            raise ToolDefinitionError(f"tools[{position}] repeats the name {shown(tool.name)}: rename one")
        known[tool.name] = tool
    return known


def digest(tools: Iterable[Any]) -> str:
    """SHA-256, as 64 hex digits, of what a model sees of the tools: names, descriptions and schemas, in their order and
    with the order of their keys (a prompt has it, too). Equal digests: the schema was frozen (A7)."""
    seen = [[tool.name, tool.description, tool.parameters] for tool in as_tools(tools).values()]
    return hashlib.sha256(json_text(seen).encode("utf-8", "surrogatepass")).hexdigest()


def _fields(definition: Any) -> Mapping[str, Any]:
    if is_provided(definition):
        raise ToolDefinitionError(
            f"a tool of the provider (type {shown(definition['type'])}): it is passed on in a request, and is neither "
            "judged nor run here; a tool of your own has the type 'function' and a schema"
        )
    fields = definition_fields(definition, "description", "annotations", "strict")
    if fields is not None:
        return fields
    raise ToolDefinitionError(
        f"not a tool definition ({shown(definition)}): expected an object with 'name' and 'parameters', 'input_schema' "
        "or 'inputSchema'"
    )


def _annotations(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    hints = ("readOnlyHint", *_HINTS.values())
    return {hint: getattr(value, hint, None) for hint in hints}


def _flag(hints: Mapping[str, Any], name: str) -> bool | None:
    value = hints.get(name)
    return value if isinstance(value, bool) else None


def _effect(hints: Mapping[str, Any]) -> Effect:
    """What MCP's hints say. Only a hint that is there counts: its defaults would make every tool external."""
    if hints.get("readOnlyHint") is True:
        return "read"
    return "external" if hints.get("openWorldHint") is True else "write"


def _copied(value: Any) -> Any:
    """A copy in plain lists and dicts, so that nobody changes the tool later."""
    if isinstance(value, Mapping):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list | tuple) else value
