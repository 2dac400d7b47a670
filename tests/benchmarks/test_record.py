"""Files of results."""

from __future__ import annotations

from pathlib import Path

from benchmarks import record
from benchmarks.process import Allocator, Conditions
from benchmarks.record import Document


def document(*names: str, sizes: int = 1) -> Document:
    rows = [{"name": name, "sizes": {"L": sizes}} for name in names]
    return {"machine": {}, "conditions": {}, "rows": rows}


def test_a_new_row_takes_the_place_of_the_old_one() -> None:
    old, new = document("c", "a", sizes=1), document("b", "a", sizes=2)
    merged = record.merge(old, new, ["a", "b", "c"])
    assert [(row["name"], row["sizes"]["L"]) for row in merged["rows"]] == [
        ("a", 2), ("b", 2), ("c", 1)
    ]  # fmt: skip
    assert record.merge(None, new, ["a", "b"])["rows"][0]["name"] == "a"


def test_what_is_written_is_read(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "x.json"
    assert record.read(file) is None
    record.write(file, document("a"))
    assert record.read(file) == document("a")
    assert [path.name for path in file.parent.iterdir()] == ["x.json"]


def test_a_file_is_named_after_the_machine_and_the_setting() -> None:
    machine = {"processor": "AMD EPYC 9B45 (Turin)"}
    path = record.path(Path("results"), machine, Conditions(threads=2, allocator=Allocator.KEEP))
    assert path.name == "amd-epyc-9b45-turin-2-threads-keep.json"


def test_circumstances_name_versions_and_load() -> None:
    found = record.circumstances(0.5)
    assert {"dsfc", "torch", "numpy"} <= set(found["versions"]) and found["load"][0] == 0.5
    assert record.machine()["cores"] >= 1
