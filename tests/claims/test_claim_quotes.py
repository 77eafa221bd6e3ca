"""Quotes stand in their sources, word for word."""

import hashlib

import pytest
from workplace import SOURCE, claim, unassessed

from neuralrace.claims import quotes
from neuralrace.claims.spec import read_claims
from neuralrace.errors import UserError

TEXT = "First things first.  Modes are learned\none by one, in order of $s_i$; then all ends.\n"


def source(text):
    return SOURCE | {"text_sha256": hashlib.sha256(text.encode()).hexdigest()}


def written(work, *words):
    claims = [claim(id=f"claim-{n}", quote=quote) for n, quote in enumerate(words)]
    return work.write(*claims, source=source(TEXT))


@pytest.fixture
def texts(tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "seed.txt").write_text(TEXT, encoding="utf-8")
    (folder / "figure.png").write_bytes(b"\x89PNG\xff\xfe")  # no text, and not asked for
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
def test_found(work, texts, quote):
    assert quotes.check([written(work, quote)], texts) == 1


@pytest.mark.parametrize(
    ("quote", "missing"),
    [
        ("Modes are learned two by two", "Modes are learned two by two"),
        ("modes are learned", "modes are learned"),  # case counts
        ("First … Modes are lost", "Modes are lost"),
        ("then all ends. … First things", "First things"),  # in the order of the text
        ("first … things first", "things first"),  # parts do not overlap
        ("First…things", "First…things"),  # not set apart by spaces
        ("one by one … one", "one"),  # each part stands for itself
    ],
)
def test_not_found(work, texts, quote, missing):
    path = written(work, "First things first.", quote)
    with pytest.raises(UserError) as caught:
        quotes.check([path], texts)
    assert str(caught.value) == f"{path}: claim-1: quote: not in the source: {missing!r}"


def test_all_mistakes_of_all_papers_are_told(work, texts):
    files = [
        written(work, "No.", "First things first.", "Neither."),
        work.write(unassessed(quote="Nor this."), paper="other", source=source(TEXT)),
    ]
    with pytest.raises(UserError) as caught:
        quotes.check(files, texts)
    told = str(caught.value).splitlines()
    assert [line.split(": ")[1] for line in told] == ["claim-0", "claim-2", "a-claim"]
    assert "other/claims.yaml" in told[2]


def test_mistakes_of_one_paper(work):
    path = written(work, "No.", "First things first.")
    found = list(quotes.mistakes(read_claims([path])[path], TEXT))
    assert found == ["claim-0: quote: not in the source: 'No.'"]


def test_a_missing_text_is_told(work, texts):
    (texts / "seed.txt").write_text(TEXT + "changed", encoding="utf-8")
    path = written(work, "First things first.")
    with pytest.raises(UserError) as caught:
        quotes.check([path], texts)
    digest = hashlib.sha256(TEXT.encode()).hexdigest()
    for words in (f"{texts}: holds no text", digest, str(path), "(On learning)"):
        assert words in str(caught.value)


def test_command_line(work, texts, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "config" / "a"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    written(work, "First things first.", "Modes are learned").rename(folder / "claims.yaml")
    assert quotes.main([str(texts)]) == 0
    assert capsys.readouterr().out == "2 quotes stand in their sources\n"
    written(work, "Never.").rename(folder / "claims.yaml")
    assert quotes.main([str(texts)]) == 1
    told = "config/a/claims.yaml: claim-0: quote: not in the source: 'Never.'\n"
    assert capsys.readouterr().err == told
    for arguments in ([], [str(texts), str(texts)], [str(texts / "none")]):
        assert quotes.main(arguments) == 2
        assert "usage: python -m neuralrace.claims.quotes" in capsys.readouterr().err
