"""Advice on tool definitions: what makes a model call the wrong tool, call none, or call it wrongly.

An ``error`` is a definition that cannot work: an API will refuse it, or no call can be judged. A ``warning`` costs
calls or tokens. Nothing here is certain about a model; the rules are those that API providers give.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from streamparse.decoding.values import ANY, compile_tools
from streamparse.errors import ToolDefinitionError
from streamparse.events import json_text
from streamparse.tools.definition import Tool
from streamparse.tools.names import fold
from streamparse.tools.schema import Node, Schema
from streamparse.tools.wording import clip, counted, place, plain, shown

TOOLS = 10
"""Tools in one request; with more, models choose worse (B8)."""

TOKENS = 180
"""Tokens of one definition. 120 to 180 is usual; each is paid for in every round."""

OPTIONAL = 5
"""Optional parameters of one tool. Models leave out the one that was needed, or fill in all of them."""

SHORT = 20
"""Characters of a description that cannot say both what a tool does and when to call it."""

_CJK = re.compile("[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_VERSIONED = re.compile(r"(?:^|[_-])(?:v?\d+(?:[._-]\d+)*|new|old|tmp|temp|final|[0-9a-f]{8,})$", re.IGNORECASE)
_TRIGGER = re.compile(r"\b(?:when|whenever|if|before|after|must|only|first|instead)\b", re.IGNORECASE)
_TRIGGER_CJK = re.compile("当|時|时|如果|必须|必須|とき|場合|前に|するまで|경우|때|반드시")
_WEAK = re.compile(
    r"\b(?:may|might|can|could|should|possibly|optionally)\b(?=[^.]{0,20}\b(?:use|call|invoke|run)\b)", re.IGNORECASE
)
_VAGUE = re.compile(
    r"\b(?:various|etc|stuff|things?|misc(?:ellaneous)?|helper|utility|handles?|manages?|process(?:es)?|deals? with|"
    r"as needed|if needed|and so on|some kind of)\b",
    re.IGNORECASE,
)

Severity = Literal["error", "warning"]


class Finding(msgspec.Struct, frozen=True):
    """One piece of advice. ``tool`` is the name, or ``tools[3]`` where there is none, or empty for the whole list;
    ``path`` the parameter; ``message`` says what to change."""

    severity: Severity
    code: str
    tool: str
    message: str
    path: str = ""


class Report(msgspec.Struct, frozen=True):
    """All findings, the estimated tokens of each tool, and those of one round (every tool is sent in each)."""

    findings: tuple[Finding, ...]
    tokens: dict[str, int]
    tokens_per_round: int

    @property
    def clean(self) -> bool:
        """Whether there is no error. Warnings are advice."""
        return not any(finding.severity == "error" for finding in self.findings)


def lint(tools: Iterable[Any]) -> Report:
    """Look at tool definitions, in any form, also broken ones. Raises ``ToolDefinitionError`` for what is no list."""
    if isinstance(tools, Mapping | str | bytes) or not isinstance(tools, Iterable):
        raise ToolDefinitionError(f"tools must be a list of tool definitions, not {shown(tools)}")
    findings: list[Finding] = []
    known: list[Tool] = []
    for position, definition in enumerate(tools):
        try:
            tool = Tool.of(definition)
        except ToolDefinitionError as error:
            findings.append(Finding("error", "broken_definition", f"tools[{position}]", plain(str(error))))
            continue
        known.append(tool)
        findings += _tool_findings(tool)
    findings += _list_findings(known)
    costs = [(tool.name, estimate_tokens(json_text(tool.to_openai()))) for tool in known]
    tokens = dict(costs)
    for name, count in tokens.items():
        if count > TOKENS:
            message = f"about {count} tokens in every round; 120 to {TOKENS} is usual: shorten it"
            findings.append(Finding("warning", "long_definition", name, message))
    return Report(tuple(findings), tokens, sum(count for _, count in costs))


def estimate_tokens(text: str) -> int:
    """Tokens of a text, from its characters: four to a token, Chinese, Japanese and Korean ones one each."""
    wide = len(_CJK.findall(text))
    return wide + -(-(len(text) - wide) // 4)


def _tool_findings(tool: Tool) -> Iterator[Finding]:
    for code, message in (*_name_advice(tool.name), *_description_advice(tool.description)):
        severity: Severity = "error" if code == "invalid_name" else "warning"
        yield Finding(severity, code, clip(plain(tool.name), 64), message)
    schema = Schema(tool.parameters, f"tool {shown(tool.name)}")
    types = compile_tools([tool])[tool.name].parameters
    required = {key for node in schema.root.alike() for key in node.value.get("required", ())}
    fields = {key: each for node in schema.root.reachable() for key, each in node.properties.items()}
    for key, node in fields.items():
        for code, message in _parameter_advice(node, untyped=types.get(key, ANY) == ANY):
            yield Finding("warning", code, tool.name, message, place((key,)))
    for key in sorted(required - fields.keys()):
        message = "it is required and not declared: the model is never told what it is"
        yield Finding("warning", "undeclared_required", tool.name, message, place((key,)))
    optional = len(fields.keys() - required)
    if optional > OPTIONAL:
        message = f"{optional} optional parameters: require what is always needed, and drop or group the rest"
        yield Finding("warning", "many_optional", tool.name, message)


def _name_advice(name: str) -> Iterator[tuple[str, str]]:
    if not _NAME.fullmatch(name):
        yield "invalid_name", "APIs take 1 to 64 letters, digits, '_' and '-' as a name"
    elif _VERSIONED.search(name):
        yield "unstable_name", "a version or a number in a name changes, and old conversations keep the old one"


def _description_advice(text: str) -> Iterator[tuple[str, str]]:
    if not text.strip():
        yield "no_description", "say what it does and when it must be called, in the words of the user"
        return
    wide = len(_CJK.findall(text))
    if len(text.strip()) + 3 * wide < SHORT:
        yield "short_description", "too short to say both what it does and when it must be called"
    if not _TRIGGER.search(text) and not _TRIGGER_CJK.search(text):
        yield "no_trigger", "it does not say when to call it: 'You must call this when the user asks …'"
    if match := _WEAK.search(text):
        yield "weak_trigger", f"'{match[0]}' leaves it open whether to call it: say 'must'"
    if match := _VAGUE.search(text):
        yield "vague", f"'{match[0]}' says nothing that a model could choose by: name what it does"


def _parameter_advice(node: Node, *, untyped: bool) -> Iterator[tuple[str, str]]:
    value = node.value
    if untyped:
        yield "untyped", "no type: text and JSON cannot be told apart while they stream; give it one"
    elif "array" in node.allowed.types and not any("items" in each.value or "prefixItems" in each.value
                                                   for each in node.alike()) and not node.unions:  # fmt: skip
        yield "untyped_items", "an array without 'items': say what stands in it"
    elif len(node.allowed.types - {"null", "integer"}) > 1 and "string" in node.allowed.types:
        kinds = " or ".join(sorted(node.allowed.types - {"null"}))
        yield "mixed_types", f"it may be {kinds}: a string that looks like the other is read as the other"
    if not any(isinstance(each.value.get("description"), str) for each in node.alike()) and not value.get("enum"):
        yield "no_parameter_description", "say what it is, in which unit or form"


def _list_findings(tools: Sequence[Tool]) -> Iterator[Finding]:
    if len(tools) > TOOLS:
        message = f"{counted(len(tools), 'tool')} in one request: send at most {TOOLS}, by the task"
        yield Finding("warning", "many_tools", "", message)
    seen: dict[str, str] = {}
    for tool in tools:
        key = fold(tool.name)
        if key in seen:
            same = tool.name == seen[key]
            message = "the name comes twice" if same else f"hardly to be told from '{clip(plain(seen[key]), 64)}'"
            code = "repeated_name" if same else "similar_name"
            yield Finding("error" if same else "warning", code, clip(plain(tool.name), 64), message)
        seen.setdefault(key, tool.name)
