"""The recovery check: after a precise error, does a model fix the argument that was wrong?

``RecoveryCase`` says what is asked, ``RecoveryCheck`` leads one dialogue, ``run_case`` leads it with a model,
``run_cases`` many of them into a ``Report``. ``docs/recovery.md`` shows how.
"""

from __future__ import annotations

from streamparse.agent.recovery.case import (
    AnswerRule,
    Fix,
    Prepared,
    RecoveryCase,
    Refusal,
    SchemaChanged,
    case_of,
    case_text,
    read_case,
)
from streamparse.agent.recovery.check import RecoveryCheck
from streamparse.agent.recovery.classes import End, TurnClass
from streamparse.agent.recovery.drive import run_case, run_case_sync, run_cases
from streamparse.agent.recovery.metrics import measure, measure_reports
from streamparse.agent.recovery.mutation import generate
from streamparse.agent.recovery.page import page
from streamparse.agent.recovery.rates import Metrics, Rate, wilson
from streamparse.agent.recovery.report import (
    STATEMENT,
    Conditions,
    Dialogue,
    Report,
    TurnReport,
    read_report,
    read_reports,
    report_text,
)
from streamparse.agent.recovery.scripted import SCRIPTS, scripted_model
from streamparse.agent.recovery.store import bundled, read_pack, stock_case

__all__ = [
    "SCRIPTS",
    "STATEMENT",
    "AnswerRule",
    "Conditions",
    "Dialogue",
    "End",
    "Fix",
    "Metrics",
    "Prepared",
    "Rate",
    "RecoveryCase",
    "RecoveryCheck",
    "Refusal",
    "Report",
    "SchemaChanged",
    "TurnClass",
    "TurnReport",
    "bundled",
    "case_of",
    "case_text",
    "generate",
    "measure",
    "measure_reports",
    "page",
    "read_case",
    "read_pack",
    "read_report",
    "read_reports",
    "report_text",
    "run_case",
    "run_case_sync",
    "run_cases",
    "scripted_model",
    "stock_case",
    "wilson",
]
