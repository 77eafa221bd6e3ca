"""Quotes are exact: they are in the texts of their papers, word for word."""

import hashlib

import pytest

from claims_folder import SOURCE, claim, unassessed
from neuralrace.claims import quotes
from neuralrace.errors import UserError

TEXT = "First things first.  Modes are learned\none by one, in order of $s_i$; then all ends.\n"


def source(text):
    return SOURCE | {"text_sha256": hashlib.sha256(text.encode()).hexdigest()}


def quoting(work, *quotes):
    claims = [claim(id=f"claim-{n}", quote=quote) for n, quote in enumerate(quotes)]
    return work.write(*claims, source=source(TEXT))


@pytest.fixture
def texts(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "seed.txt").write_text(TEXT, encoding="utf-8")
    (folder / "figure.png").write_bytes(b"\x89PNG\xff\xfe")  # no text, and no source
    (folder / "more").mkdir()
    return folder


@pytest.mark.parametrize(
    "quote",
    [
        "Modes are learned one by one, in order of $s_i$; then all ends.",  # over a line break
        "First things first. Modes",
        "First things … then all ends.",
        "First … Modes … ends.",
        "  Modes are\n  learned ",
    ],
)
def test_exact_quotes_pass(work, texts, quote):
    assert quotes.check([quoting(work, quote)], texts) == 1


@pytest.mark.parametrize(
    "quote",
    [
        "Modes are learned two by two",
        "modes are learned",  # case counts
        "First … Modes are lost",
        "then all ends. … First things",  # in the order of the text
        "first … things first",  # parts do not overlap
        "First…things",  # not set apart by spaces
        "one by one … one",  # each part stands for itself
        "First.*ends",  # no pattern
    ],
)
def test_a_changed_quote_is_reported(work, texts, quote):
    path = quoting(work, "First things first.", quote)
    with pytest.raises(UserError, match="not in the source") as error:
        quotes.check([path], texts)
    assert (error.value.file, error.value.key) == (str(path), "claim-1.quote")
    assert error.value.value == repr(quote)


@pytest.mark.parametrize(("left_out", "exact"), [(200, True), (201, False)])
def test_an_omission_is_short(work, texts, left_out, exact):
    text = f"One{'x' * left_out}two{'x' * 150}three."
    (texts / "long.txt").write_text(text, encoding="utf-8")
    path = work.write(claim(quote="One … two … three."), source=source(text))
    if exact:
        assert quotes.check([path], texts) == 1
    else:
        with pytest.raises(UserError, match="at most 200 characters for each …"):
            quotes.check([path], texts)


def test_mistakes_of_all_papers_are_reported_at_once(work, texts):
    files = [
        quoting(work, "No.", "First things first.", "Neither."),
        work.write(unassessed(quote="Nor this."), paper="other", source=source(TEXT)),
    ]
    with pytest.raises(UserError) as error:
        quotes.check(files, texts)
    lines = str(error.value).splitlines()
    keys = ["claim-0.quote", "claim-2.quote", "a-claim.quote"]
    assert [line.split(": ")[1] for line in lines] == keys
    assert "other/claims.yaml" in lines[2]


def test_a_missing_text_is_reported(work, texts):
    (texts / "seed.txt").write_text(TEXT + "changed", encoding="utf-8")
    path = quoting(work, "First things first.")
    with pytest.raises(UserError) as error:
        quotes.check([path], texts)
    digest = hashlib.sha256(TEXT.encode()).hexdigest()
    assert error.value.file == str(texts)
    for words in ("holds no text", digest, str(path), "(On learning)"):
        assert words in error.value.problem


def test_command_line(work, texts, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "config" / "a"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    quoting(work, "First things first.", "Modes are learned").rename(folder / "claims.yaml")
    assert quotes.main([str(texts)]) == 0
    assert capsys.readouterr().out == "2 quotes are exact\n"
    quoting(work, "Never.").rename(folder / "claims.yaml")
    assert quotes.main([str(texts)]) == 1
    expected = "config/a/claims.yaml: claim-0.quote: 'Never.': not in the source"
    assert capsys.readouterr().err.startswith(expected)
    for arguments in ([], [str(texts / "none")]):
        assert quotes.main(arguments) == 2
        assert "usage: python -m neuralrace.claims.quotes" in capsys.readouterr().err
