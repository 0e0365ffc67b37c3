"""The bytes of one body -> events: framing and decoder behind each other. Sans-IO.

This is the one way from bytes to events, for a response, a recording and a file alike."""

from __future__ import annotations

from streamparse.errors import TransportError
from streamparse.events import Deviated, Deviation, DeviationCode, Event
from streamparse.limits import EXCERPT, MAX_BODY, MAX_EVENT
from streamparse.transport.framing import FramingKind, make_framing
from streamparse.transport.wires import Decoder


class Body:
    """Decodes one body. ``feed`` takes bytes, ``close`` ends it; both return events, in order, and never raise on
    input.

    ``error`` says what the *transport* lacks (an endless event, an end inside an event); what the answer lacks is in
    the events. With an error, the decoder was closed by rule E4: what was decoded is kept, running calls fail.
    """

    __slots__ = ("_decoder", "_feed", "_framing", "_split", "decoder", "received")

    def __init__(
        self, decoder: Decoder, framing: FramingKind, *, max_event: int = MAX_EVENT, max_body: int = MAX_BODY
    ) -> None:
        self.decoder = decoder
        self.received = 0
        """Bytes so far."""
        self._framing = make_framing(framing, max_event=max_event, max_body=max_body)
        self._split = self._framing.feed
        self._feed = decoder.feed

    @property
    def error(self) -> TransportError | None:
        """What is wrong with the body itself."""
        return self._framing.error

    @property
    def done(self) -> bool:
        """Whether the answer has said that nothing more comes. More may be read: usage, and the end of the response, so
        that the connection can be used again."""
        return self.decoder.done

    @property
    def over(self) -> bool:
        """Whether it is ``done``, or has an ``error``."""
        return self.decoder.done or self._framing.error is not None

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes make certain. None any more once ``error`` is set."""
        self.received += len(data)
        found = self._split(data)
        if len(found) == 1:
            return self._feed(found[0])
        return [event for payload in found for event in self._feed(payload)]

    def close(self, finish_reason: str | None = None, *, clean: bool = True) -> list[Event]:
        """The end of the body; ``clean`` is False when the connection broke (E4)."""
        last = self._framing.close(clean=clean)
        events = [event for payload in last for event in self._feed(payload)]
        if self._framing.unterminated is not None:
            detail = self._framing.unterminated[:EXCERPT]
            events.append(Deviated(None, Deviation(DeviationCode.UNTERMINATED_EVENT, self.received, detail)))
        broken = not clean or self._framing.error is not None
        return events + self.decoder.close("error" if broken else finish_reason)
