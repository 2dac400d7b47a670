"""The version of certificates: it follows the types, and no other is read."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Callable, Iterator

import pytest

from dsfc.source import Span
from dsfc.trusted import schema
from dsfc.trusted.check import check, read, write
from dsfc.trusted.claim import Certificate, Claim
from dsfc.trusted.rejected import Rejected
from dsfc.trusted.schema import OtherFormat, form


@pytest.fixture
def forms(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[type], str]]:
    """The format if certificates were of another type."""

    def of(cls: type) -> str:
        monkeypatch.setattr(schema, "Certificate", cls)
        form.cache_clear()
        return form()

    yield of
    monkeypatch.undo()
    form.cache_clear()


class Kind(enum.Enum):
    ONE = 1


def made(name: str, *fields: tuple[str, object]) -> type:
    return dataclasses.make_dataclass(name, fields)


def test_the_format_follows_the_types(forms: Callable[[type], str]) -> None:
    own = form()
    assert own == forms(Certificate)
    inner = made("Inner", ("kind", Kind))
    kinds = [
        made("Certificate", ("claim", Claim)),
        made("Certificate", ("claim", Claim), ("more", int)),
        made("Certificate", ("claim", Claim), ("more", bool)),
        made("Certificate", ("claim", Claim), ("less", int)),
        made("Certificate", ("claim", Claim), ("more", tuple[int, ...])),
        made("Certificate", ("claim", Claim), ("more", tuple[inner, ...])),
    ]
    found = [own, *map(forms, kinds)]
    assert len(set(found)) == len(found)


def test_a_new_member_of_an_enum_is_another_format(forms: Callable[[type], str]) -> None:
    def with_kind(*members: str) -> str:
        return forms(made("Certificate", ("kind", enum.Enum("Kind", members))))

    assert with_kind("A", "B") != with_kind("A", "B", "C") != with_kind("A", "C", "B")


def test_another_format_is_refused(certificate: Callable) -> None:
    text = write(certificate("linear", "taps_two", "taps_three"))
    document = json.loads(text)
    assert document["format"] == form() and check(text)
    for older in ("dsfc-proof/1", "dsfc-proof/2", f"dsfc-proof/{schema.MEANING}.00000000"):
        with pytest.raises(OtherFormat, match=older) as caught:
            check(json.dumps(document | {"format": older}))
        assert (caught.value.found, caught.value.wanted) == (older, form())
        # An older document need not have the parts of this one.
        with pytest.raises(OtherFormat):
            read(json.dumps({"format": older, "claim": {}}))
    for foreign in ("", "proof", "dsfc-proof/x", 2, None):
        with pytest.raises(Rejected, match="the format is not") as refused:
            read(json.dumps(document | {"format": foreign}))
        assert not isinstance(refused.value, OtherFormat)


def test_an_annotation_is_written_by_the_names_of_its_classes() -> None:
    class Inner:
        pass

    for hint, written, classes in (
        (int, "int", [int]),
        (tuple[Inner, ...], "tuple[Inner,Ellipsis]", [Inner]),
        (Inner | None, "one[Inner,NoneType]", [Inner, type(None)]),
        (tuple[tuple[str, Inner], ...] | int,
         "one[tuple[tuple[str,Inner],Ellipsis],int]", [str, Inner, int]),
    ):  # fmt: skip
        assert schema._text(hint) == written and schema._classes(hint) == classes


def test_fields_that_are_not_written_are_left_out(forms: Callable[[type], str]) -> None:
    own = made("Certificate", ("claim", Claim))
    more = dataclasses.make_dataclass(
        "Certificate",
        [("claim", Claim), ("span", Span | None), ("kept", int, dataclasses.field(init=False))],
    )
    assert forms(own) == forms(more) != forms(made("Certificate", ("claim", Claim), ("kept", int)))
    with_lines = [line for line in schema._lines() if line.startswith("Certificate: ")]
    assert with_lines == ["Certificate: claim=Claim kept=int"]
    assert not any(line.startswith("Span") for line in schema._lines())
