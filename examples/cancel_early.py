"""Stop a generation at the first character that cannot be right, instead of paying for the rest of the call.

python examples/cancel_early.py

The model (here: a text in pieces of a token's size) asks for a forecast in kelvin, which the tool does not know. Its
first argument is wrong at the letter "k". What would follow is a long call that no validation can accept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import streamparse

TOOL = {
    "name": "plot_forecast",
    "parameters": {
        "type": "object",
        "properties": {
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
            "style": {"type": "string"},
        },
        "required": ["unit", "style"],
    },
}
ANSWER = streamparse.render_answer(
    text="Here is the plot.",
    calls=[("plot_forecast", {"unit": "kelvin", "style": "line { width: 2px; colour: teal }\n" * 60})],
)


def tokens(text: str, size: int = 4) -> Iterator[str]:
    """The answer as a model writes it, one token after the other."""
    for at in range(0, len(text), size):
        yield text[at : at + size]


def first_rejection(answer: Iterable[str]) -> tuple[streamparse.ArgumentRejected | None, int]:
    """Read until the call cannot be right any more. Returns why, and how many tokens were read."""
    decoder = streamparse.NativeDecoder(tools=[TOOL], early=True)
    read = 0
    for token in answer:
        read += 1
        for event in decoder.feed(token):
            if isinstance(event, streamparse.ArgumentRejected):
                return event, read  # a real agent closes the response here, and sends an observation
    return None, read


def main() -> None:
    rejected, read = first_rejection(tokens(ANSWER))
    whole = sum(1 for _ in tokens(ANSWER))
    assert rejected is not None
    issue = rejected.issue
    print(f"{rejected.path[0]}: {issue.code}, found {issue.value}, allowed {' or '.join(issue.allowed)}")
    print(f"stopped after {read} of {whole} tokens: {whole - read} saved ({(whole - read) / whole:.0%})")


if __name__ == "__main__":
    main()
