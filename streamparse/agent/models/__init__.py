"""Models: what turns a request into the events of one answer. Live, recorded or scripted; the loop sees no difference.

``base`` says what a model is. ``ScriptedModel`` says what it is told to say, ``RecordedModel`` plays recordings,
``HttpModel`` asks an endpoint.
"""

from __future__ import annotations

from streamparse.agent.models.base import Answer, IdFactory, Model, Request
from streamparse.agent.models.live import HttpAnswer, HttpModel
from streamparse.agent.models.played import PlayedAnswer
from streamparse.agent.models.recorded import RecordedModel
from streamparse.agent.models.scripted import Content, Said, Script, ScriptedModel

__all__ = [
    "Answer",
    "Content",
    "HttpAnswer",
    "HttpModel",
    "IdFactory",
    "Model",
    "PlayedAnswer",
    "RecordedModel",
    "Request",
    "Said",
    "Script",
    "ScriptedModel",
]
