"""A tool from a typed Python function: its signature is the schema, its docstring the description."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, get_type_hints

import msgspec

from streamparse.errors import ToolDefinitionError
from streamparse.tools.definition import Effect, Tool
from streamparse.tools.docstrings import read_docstring
from streamparse.tools.wording import place

_REFUSED = {
    inspect.Parameter.VAR_POSITIONAL: "takes any number of values (*args): give it a list as one parameter",
    inspect.Parameter.VAR_KEYWORD: "takes any field (**kwargs): declare the fields",
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only: arguments come by name",
}


def tool_from_function(
    function: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    effect: Effect = "write",
    idempotent: bool | None = None,
) -> Tool:
    """The tool that calls ``function``.

    Types become the schema as msgspec writes it (``Literal``, enums, dataclasses, structs, ``TypedDict``,
    ``Annotated[int, msgspec.Meta(ge=1)]``); a parameter with a default is optional. The docstring gives the description
    and, in Google, NumPy or Sphinx style, what each parameter is. ``Tool.call`` converts JSON arguments into these
    types before the function sees them; an async function gives an awaitable.

    Raises ``ToolDefinitionError``, naming the parameter, for one without a type, with a type that JSON cannot carry,
    for ``*args``, ``**kwargs`` and positional-only ones. A ``functools.partial`` needs a ``name``.
    """
    name = str(name or getattr(function, "__name__", ""))
    target = _unbound(function)
    told, documented = read_docstring(target.__doc__ if inspect.isclass(target) else inspect.getdoc(target))
    types, parameters = _typed(target, name), _parameters(function, name)
    if lost := parameters.keys() - types.keys():
        raise ToolDefinitionError(f"function {name!r}: the type of parameter {min(lost)!r} cannot be read")
    schemas, components = _schemas({key: types[key] for key in parameters}, name)
    for key, schema in schemas.items():
        if documented.get(key) and "description" not in schema:
            schema["description"] = documented[key]
        _add_default(schema, parameters[key])
    required = [key for key, each in parameters.items() if each.default is inspect.Parameter.empty]
    return Tool(
        name,
        told if description is None else description,
        {
            "type": "object",
            "properties": schemas,
            "required": required,
            "additionalProperties": False,
            **({"$defs": components} if components else {}),
        },
        effect=effect,
        idempotent=idempotent,
        function=function,
        convert=partial(_convert, {key: types[key] for key in parameters}),
    )


def _unbound(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function that a ``functools.partial`` calls, which has the types and the docstring."""
    while isinstance(function, partial):
        function = function.func
    return function


def _parameters(function: Callable[..., Any], name: str) -> dict[str, inspect.Parameter]:
    try:
        parameters = dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        raise ToolDefinitionError(f"function {name!r}: its parameters cannot be read") from None
    for key, parameter in parameters.items():
        if parameter.kind in _REFUSED:
            raise ToolDefinitionError(f"function {name!r}: parameter {key!r} {_REFUSED[parameter.kind]}")
        if parameter.annotation is inspect.Parameter.empty:
            raise ToolDefinitionError(f"function {name!r}: parameter {key!r} has no type: annotate it")
    return parameters


def _typed(function: Callable[..., Any], name: str) -> dict[str, Any]:
    targets: list[Any] = [function]
    if inspect.isclass(function):
        targets.append(function.__init__)
    elif not inspect.isroutine(function):
        targets = [type(function).__call__]
    try:
        return {key: each for target in targets for key, each in get_type_hints(target, include_extras=True).items()}
    except Exception as error:  # annotations are code, and may fail in any way
        raise ToolDefinitionError(f"function {name!r}: its annotations cannot be read: {error}") from None


def _schemas(types: Mapping[str, Any], name: str) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The schema of each parameter, and what these refer to."""
    for key, each in types.items():
        try:
            msgspec.json.schema_components([each])
        except Exception as error:  # msgspec raises TypeError, and whatever the types' own code raises
            reason = str(error).strip().splitlines()[-1:] or [type(error).__name__]
            raise ToolDefinitionError(f"function {name!r}: parameter {key!r}: {reason[0]}") from None
    schemas, components = msgspec.json.schema_components(list(types.values()), ref_template="#/$defs/{name}")
    return {key: dict(schema) for key, schema in zip(types, schemas, strict=True)}, dict(components)


def _add_default(schema: dict[str, Any], parameter: inspect.Parameter) -> None:
    if parameter.default is inspect.Parameter.empty:
        return
    try:
        schema["default"] = msgspec.json.decode(msgspec.json.encode(parameter.default))
    except Exception:  # a default that is no JSON is still a default: the field is optional
        schema.pop("default", None)


def _convert(types: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """JSON arguments as the types of the function. ``msgspec.ValidationError``, which names the place, for what does
    not fit after all: schemas say less than types (``format`` is not checked)."""
    return {key: _converted(key, value, types[key]) if key in types else value for key, value in arguments.items()}


def _converted(key: str, value: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind, str_keys=True)
    except msgspec.ValidationError as error:
        words, _, inner = str(error).partition(" - at `$")
        raise msgspec.ValidationError(f"{place((key,))}{inner.rstrip('`')}: {words}") from None
