"""A recording -> the decoder that reads it: what the header says, and what the request said of the tools."""

from __future__ import annotations

from streamparse.errors import ToolDefinitionError
from streamparse.transport.body import Body
from streamparse.transport.formats import framing_of
from streamparse.transport.recording import Header
from streamparse.transport.wires import Options, Wire


def options_of(header: Header) -> Options:
    """The options of a decoder for this recording. The tools of the request are used where they can be."""
    options = Options(tools=header.tools, dialect=header.dialect, start=header.start)
    if header.tools is not None or not isinstance(header.request, dict) or not header.request.get("tools"):
        return options
    with_tools = Options(tools=header.request["tools"], dialect=header.dialect, start=header.start)
    try:
        with_tools.decoder(Wire.CHAT)
    except (ToolDefinitionError, TypeError):
        return options
    return with_tools


def body_of(header: Header, beginning: bytes) -> Body | None:
    """A new decoder for the recorded body, which begins like this; None if it is no answer: an error page, for one.

    Raises as the decoder does, for tools and a dialect that the header names."""
    framing = framing_of(header, beginning)
    return None if framing is None else Body(options_of(header).decoder(header.wire), framing)
