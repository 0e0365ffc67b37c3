"""``streamparse lint``: advice on a file of tool definitions."""

from __future__ import annotations

from typing import Literal, TextIO

import msgspec

from streamparse.commands.decode import read_tools
from streamparse.commands.sinks import encode_as
from streamparse.commands.wording import counted, one_line
from streamparse.tools.lint import Finding, Report, lint


def lint_file(name: str, out: TextIO, *, form: Literal["text", "json"] = "text") -> bool:
    """Write the report on the definitions in a file to ``out``. Whether there is no error.

    Raises ``UsageError`` for a file that cannot be read, and ``ToolDefinitionError`` for one without a list of tools.
    """
    report = lint(read_tools(name))
    if form == "json":
        encode_as(out, "utf-8")
        out.write(f"{msgspec.json.encode(report).decode()}\n")
    else:
        encode_as(out, None)
        out.write(_text(report))
    return report.clean


def _text(report: Report) -> str:
    lines = [_line(finding) for finding in report.findings]
    lines += [f"{one_line(name)}: about {tokens:,} tokens" for name, tokens in report.tokens.items()]
    errors = sum(finding.severity == "error" for finding in report.findings)
    words = f"{counted(errors, 'error')}, {counted(len(report.findings) - errors, 'warning')}"
    lines.append(f"{words}; about {report.tokens_per_round:,} tokens per round")
    return "".join(f"{line}\n" for line in lines)


def _line(finding: Finding) -> str:
    where = ".".join(part for part in (finding.tool, finding.path) if part) or "tools"
    return one_line(f"{finding.severity}: {where}: {finding.message} [{finding.code}]")
