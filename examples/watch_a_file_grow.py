"""Show a file while the model writes it, and run nothing that was cut.

python examples/watch_a_file_grow.py
"""

from __future__ import annotations

import streamparse

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "write_file",
            "parameters": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
                "required": ["path", "content"],
            },
        },
    }
]

ANSWER = """I need a config file.
</think>

Here it is.
<minimax:tool_call>
<invoke name="write_file">
<parameter name="path">pool.xml</parameter>
<parameter name="content"><pool>
  <parameter name="size">8</parameter>
  <parameter name="wait">250</parameter>
</pool>
</parameter>
</invoke>
</minimax:tool_call>"""


def main() -> None:
    decoder = streamparse.NativeDecoder("minimax_m2", tools=TOOLS, start="reasoning")
    chunks = [ANSWER[at : at + 5] for at in range(0, len(ANSWER), 5)]  # as it would come from a model
    for chunk in chunks:
        show(decoder.feed(chunk))
    show(decoder.close(finish_reason="stop"))


def show(events: list[streamparse.Event]) -> None:
    for event in events:
        match event:
            case streamparse.Text(text):
                print(text, end="", flush=True)
            case streamparse.ToolCallStarted(_, _, name):
                print(f"\n[{name}]")
            case streamparse.ArgumentDelta(_, ("content",), text):
                print(text, end="", flush=True)
            case streamparse.ToolCallFinished(_, call):
                print(f"[sealed: {len(call.arguments['content'])} characters for {call.arguments['path']}]")
            case streamparse.ToolCallFailed(_, _, error):
                print(f"[failed: {error.message}]")
            case _:
                pass


if __name__ == "__main__":
    main()
