"""The words of issues, which the decoders use, too: see ``streamparse.wording``."""

from __future__ import annotations

from streamparse.wording import PLACE, VALUE, clip, counted, listed, place, plain, quoted, requoted, shown, type_word

__all__ = ["PLACE", "VALUE", "clip", "counted", "listed", "place", "plain", "quoted", "requoted", "shown", "type_word"]
