"""A report says what was promised, what was measured and what is broken."""

from __future__ import annotations

import json
from dataclasses import replace

from dsfc.validate.report import Outcome, Report, Row

GOOD = Row("modes", "All modes agree", Outcome.KEPT, "largest relative error 1.0e-15", 0.25)
PLAIN = Row("meta", "Shapes are right on meta", Outcome.KEPT, "", 0.5)
BAD = Row("causality", "Nothing sees the future", Outcome.BROKEN, "chunked: tokens after 3", 1.0)


def test_a_report_as_text() -> None:
    report = Report("ssd", "dsfc_ssd_01234567", {"d": 6, "h": 2}, (GOOD, PLAIN, BAD))
    assert report.render() == (
        "ssd (dsfc_ssd_01234567), d = 6, h = 2\n"
        "  kept    modes         0.2 s  largest relative error 1.0e-15\n"
        "  kept    meta          0.5 s  Shapes are right on meta\n"
        "  broken  causality     1.0 s  chunked: tokens after 3\n"
        "                               promised: Nothing sees the future\n"
        "2 of 3 promises kept, 2 s, half of it in causality 1.0 s\n"
    )


def test_a_report_says_what_takes_most_of_its_time() -> None:
    third = replace(PLAIN, name="packs", seconds=0.5)
    text = Report("ssd", "n", {}, (GOOD, PLAIN, third)).render()
    assert text.endswith("3 of 3 promises kept, 1 s, half of it in meta 0.5 s, packs 0.5 s\n")
    assert Report("ssd", "n", {}).render().endswith("0 of 0 promises kept, 0 s\n")


def test_a_report_is_kept_if_every_row_is() -> None:
    assert Report("ssd", "n", {}, (GOOD, PLAIN)).kept
    broken = Report("ssd", "n", {}, (GOOD, BAD))
    assert not broken.kept
    assert broken.broken == (BAD,)
    assert broken.seconds == 1.25


def test_a_report_as_json() -> None:
    found = json.loads(json.dumps(Report("ssd", "n", {"d": 6}, (GOOD, BAD)).to_json()))
    assert found["kept"] is False
    assert [row["outcome"] for row in found["rows"]] == ["kept", "broken"]
    assert found["rows"][0]["figure"] == "largest relative error 1.0e-15"
    assert found["sizes"] == {"d": 6}
