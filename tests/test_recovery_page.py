"""The page of the recovery check: complete, without markup of a model, and looked at in a real browser."""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamparse.agent.recovery import (
    STATEMENT,
    Conditions,
    RecoveryCheck,
    Report,
    bundled,
    page,
    run_cases,
    scripted_model,
    stock_case,
)
from streamparse.agent.recovery.drive import report_of
from tests.browser import Browser, Tab, browser
from tests.conversations import Turn, chunks

STOCK = stock_case()
HABITS = ["second_try", "prose", "cycles", "malformed", "cut", "contradicts"]
CONDITIONS = Conditions(model="a model", source="scripted", wire="chat", library="1", sampling={"temperature": 0.5})
EVIL = '<script>document.title="evil"</script><img src="http://127.0.0.1:9/x.png" onerror="document.title=\'evil\'">'


def report() -> Report:
    """Six cases with six habits, and something nasty at every place that a model can reach."""
    cases = bundled()[:6]
    habit = dict(zip((case.name for case in cases), HABITS, strict=True))
    made = anyio.run(lambda: run_cases(cases, lambda case: scripted_model(habit[case.name], case), CONDITIONS))
    check = RecoveryCheck(STOCK, run=2)
    for _ in range(3):
        arguments = json.dumps({"location": "x", "unit": EVIL})
        check.read(chunks(Turn(EVIL, EVIL, [("get_weather", arguments)], False)))
    long = RecoveryCheck(STOCK, run=3)
    long.read(chunks(Turn("", "w" * 5000, [("w" * 300, "{}")] * 18, False)))
    return report_of(CONDITIONS, [*made.dialogues, check.report(), long.report()])


REPORT = report()
PAGE = page(REPORT)


class Tags(HTMLParser):
    """The tags of a page, with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: set[tuple[str, str]] = set()
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[Any]) -> None:
        self.tags[tag] += 1
        self.attributes |= {(tag, name) for name, _ in attrs}
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_conditions_come_first_and_everything_is_there():
    text = Tags(PAGE).text
    places = [
        text.index(each) for each in ("Conditions", "Cases", "Metrics", "Dialogues", "What this shows, and what not")
    ]
    assert places == sorted(places)
    assert "a model" in text[: text.index("Cases")]
    assert "prepared, not observed" in text[: text.index("Cases")]
    assert STATEMENT in text
    assert "The turns of one dialogue depend on each other" in text
    for dialogue in REPORT.dialogues:
        assert dialogue.case in text
        assert dialogue.digest in text
        for turn in dialogue.turns[:-1]:  # nothing goes back for the last one
            assert turn.feedback in text
            for call in turn.calls:
                assert all(line in text for line in call.observation.splitlines())
    for rate in REPORT.metrics.rates:
        assert f"{rate.count} of {rate.n}" in text
        assert rate.of in text
    assert text.count("n = ") == sum(rate.n > 0 for rate in REPORT.metrics.rates)


def test_calls_that_are_not_shown_are_counted():
    assert "+2 more" in Tags(PAGE).text


def test_every_percentage_has_its_n():
    text = Tags(re.sub(r"<style>.*?</style>", "", PAGE, flags=re.DOTALL)).text
    shares = re.findall(r"\d+ %.{0,10}", text)
    alone = [each for each in shares if not each.endswith(("(n = ", ")")) and "(n = " not in each]
    assert [each for each in alone if not re.fullmatch(r"\d+ %\).*|95 % Wilson.*", each)] == []
    assert len([each for each in shares if "(n = " in each]) == sum(rate.n > 0 for rate in REPORT.metrics.rates)


def test_a_format_error_stands_beside_the_documented_format():
    part = PAGE[PAGE.index("Format error, turn 1") :]
    assert "Raw output" in part
    assert "Documented there" in part


def test_the_page_names_nothing_elsewhere():
    tags = Tags(PAGE)
    assert set(tags.tags) <= set(
        "html head meta title style body main h1 h2 h3 h4 h5 section dl dt dd table thead tbody tr th td span i b a p "
        "pre ul li article div details summary".split()
    )
    loading = {("a", "src"), ("link", "href"), ("img", "src"), ("script", "src")}
    assert not tags.attributes & loading
    assert all(href.startswith("#") for href in re.findall(r'href="([^"]*)"', PAGE))
    assert "url(" not in PAGE
    assert "@import" not in PAGE
    assert tags.open == []


# No text of a model is markup.

NASTY = st.lists(
    st.sampled_from([*"<>&\"'/=!-`;#x \n\t", "script", "\u202e", "\x00", "]]>", "<!--", "\ud800", "</pre>", "&lt;"]),
    max_size=12,
).map("".join)


def filled(report: Report, text: str) -> Report:
    """The report with this text at every place that holds text, names of classes and kinds aside."""

    def fill(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: fill(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [fill(each, key) for each in value]
        closed = ("streamparse", "source", "first_call", "origin", "class", "level", "due", "end")
        return text if isinstance(value, str) and key not in closed else value

    return msgspec.convert(fill(msgspec.to_builtins(report)), Report)


SHAPE = Tags(PAGE)


@given(NASTY)
def test_no_text_can_be_markup(text):
    tags = Tags(page(filled(REPORT, text)))
    assert set(tags.tags) <= set(SHAPE.tags)
    assert tags.attributes <= SHAPE.attributes
    assert tags.open == []


# In a browser.


@pytest.fixture(scope="module")
def chromium():
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    path: Path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(PAGE, encoding="utf-8")
    return path


def opened(chromium: Browser, file: Path, **how: Any) -> Tab:
    tab = chromium.tab()
    tab.open(file, **how)
    return tab


@pytest.mark.parametrize("width", [1200, 390, 320])
def test_the_browser_shows_every_case_and_loads_nothing(chromium, file, width):
    tab = opened(chromium, file, width=width)
    assert tab.requested() == [file.as_uri()]
    assert tab.value("document.title") == "Recovery check"
    rows = tab.value("[...document.querySelectorAll('#cases tbody tr')].map(row => row.innerText)")
    assert len(rows) == len(REPORT.dialogues)
    for row, dialogue in zip(rows, REPORT.dialogues, strict=True):
        assert dialogue.case in row
        assert all(turn.turn_class in row for turn in dialogue.turns)
    assert tab.value("document.querySelectorAll('script, img, link, iframe').length") == 0
    assert tab.value("document.querySelectorAll('article').length") == len(REPORT.dialogues)
    assert tab.value("[...document.querySelectorAll('#cases a')].every(a => document.querySelector(a.hash))")


@pytest.mark.parametrize("width", [1200, 390, 320])
def test_nothing_has_to_be_scrolled_sideways(chromium, file, width):
    tab = opened(chromium, file, width=width)
    assert tab.value("innerWidth") == width
    assert tab.value("document.documentElement.scrollWidth") <= width
    outside = (
        "[...document.querySelectorAll('main *')].filter(each => each.getBoundingClientRect().right > innerWidth + 1)"
    )
    assert tab.value(f"{outside}.map(each => each.outerHTML.slice(0, 80))") == []


def test_side_by_side_on_a_desk_and_one_below_the_other_on_a_phone(chromium, file):
    places = "[...document.querySelector('.step').children].map(each => Math.round(each.getBoundingClientRect().top))"
    assert len(set(opened(chromium, file, width=1200).value(places))) == 1
    assert len(set(opened(chromium, file, width=390).value(places))) == 3


def luminance(colour: str) -> float:
    red, green, blue = (int(each) / 255 for each in re.findall(r"\d+", colour)[:3])
    linear = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in (red, green, blue)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("dark", [False, True])
def test_it_can_be_read_in_the_dark(chromium, file, dark):
    tab = opened(chromium, file, width=390, dark=dark)
    back = luminance(tab.value("getComputedStyle(document.body).backgroundColor"))
    assert (back < 0.1) is dark
    box = luminance(tab.value("getComputedStyle(document.querySelector('pre')).backgroundColor"))
    for selector, behind in [("body", back), ("pre", box), ("dt", back), ("a", back), (".good", back), (".bad", back)]:
        fore = luminance(tab.value(f"getComputedStyle(document.querySelector('{selector}')).color"))
        light, dim = max(fore, behind), min(fore, behind)
        assert (light + 0.05) / (dim + 0.05) >= 4.5, selector


def test_the_picture_is_not_empty(chromium, file):
    light, dark = (opened(chromium, file, width=390, dark=each).screenshot() for each in (False, True))
    assert size_of(light) == size_of(dark) == (390, 900)
    assert light != dark
    assert len(zlib.compress(light)) > 10_000  # a blank one has some hundred bytes


def size_of(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def test_what_a_model_wrote_does_not_run(chromium, file):
    tab = opened(chromium, file, width=1200)
    assert tab.value("document.body.innerText").count("<script>") >= 3
    assert tab.value("document.title") != "evil"
