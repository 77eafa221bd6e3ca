"""The site: built strictly, with a place for all that there is, and nothing from elsewhere."""

import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image

import neuralrace
from builders import REPOSITORY
from neuralrace.claims.judge import known_claims
from neuralrace.claims.spec import read_claims
from neuralrace.claims.stored import StoredVerdicts
from neuralrace.claims.table import write_tables
from neuralrace.extensions.registry import FIGURES, METRICS, OBSERVABLES, SOLUTIONS
from neuralrace.figures import style

DOCS = REPOSITORY / "docs"
CLAIMS = read_claims(sorted(REPOSITORY.glob("config/*/claims.yaml")))
TERMS = (
    "cell", "run", "ensemble", "gating scheme", "pathway", "race", "ReLN", "init scale",
    "gradient-flow time", "mode", "claim", "finding", "verdict", "status", "sentence",
    "variant", "checksum file", "key", "requirement",
)  # fmt: skip
ELSEWHERE = re.compile(
    r"<(?:script|link|img|iframe|source|video)\b[^>]*?\b(?:src|href|srcset)=[\"'](?:https?:)?//[^>]*"
    r"|@import[^;]*//[^;]*|url\([\"']?(?:https?:)?//[^)]*"
)
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--allow-file-access-from-files", "--enable-logging=stderr", "--virtual-time-budget=100000",
)  # fmt: skip
SEARCHED = {"gating": "glossary.html", "benchmark": "benchmark.html", "simulate": "simulate.html"}
"""Words, and a page that the search must find for them."""
LOOKED_AT = (
    "index", "gallery/deep_linear", "gallery/deep_linear/staircase", "claims/index",
    "claims/deep_linear", "theory/deep_linear", "theory/layer_dynamics", "theory/localization",
    "theory/make_haste", "theory/neural_race", "configuration", "reference", "api/functions",
    "extending", "cluster", "glossary", "start", "gallery/index", "board", "which_theory", "race",
    "panels", "workflow", "simulate",
)  # fmt: skip


class Page(HTMLParser):
    """Identifiers of a page, and words for its images."""

    def __init__(self, file: Path):
        super().__init__()
        self.identifiers: set[str] = set()
        self.alternatives: set[str] = set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        told = dict(attrs)
        self.identifiers.add(told.get("id") or "")
        if tag == "img":
            self.alternatives.add(told.get("alt") or "")


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site without results, and with notebooks as they are stored."""
    pytest.importorskip("myst_nb", reason="the site needs the extra `docs`")
    folder = tmp_path_factory.mktemp("site")
    (folder / "source").mkdir()
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-c", str(DOCS)]
    options = ["-D", "nb_execution_mode=off", "-D", "results_folder=no/results"]
    places = [str(folder / "source"), str(folder / "html")]
    done = subprocess.run(
        [*command, *options, *places], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


@pytest.fixture
def extension(monkeypatch):
    """Modules of the extension can be imported."""
    pytest.importorskip("sphinx", reason="the site needs the extra `docs`")
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))


def test_every_figure_has_a_page(site):
    for name, entry in FIGURES.items():
        if entry.path.is_relative_to(REPOSITORY):
            page = Page(site / "gallery" / f"{name}.html")
            assert f"figure-{name}".replace("/", "-").replace("_", "-") in page.identifiers
            with Image.open(REPOSITORY / "figures" / "slim" / f"{name}.png") as picture:
                assert picture.info["Description"] in page.alternatives
            module = entry.path.relative_to(REPOSITORY).as_posix()
            assert (site / "source" / f"{module}.html").is_file()


def test_page_of_a_figure_has_its_command_and_claims_on_its_experiments(extension):
    from gallery import pages

    made = pages(REPOSITORY, set())
    page = made["gallery/neural_race/natural_images.rst"]
    assert "$ snakemake --cores all figures/neural_race/natural_images.png\n" in page
    shown, _, others = page.partition(":Claims:")[2].partition(":Other claims on the same exp")
    assert "<claim-images-forty-percent>" in shown
    assert "<claim-images-threshold-falls-with-domains>" in others
    assert not {*re.findall("<claim-(.+?)>", shown)} & {*re.findall("<claim-(.+?)>", others)}
    cards = made["gallery/deep_linear.rst"]
    assert cards.count("grid-item-card::") == cards.count("\n   deep_linear/") > 5


def test_figures_without_a_page_of_theory_have_the_title_of_their_package(extension):
    from gallery import paper_title

    assert paper_title(REPOSITORY, "make_haste") == "Make Haste Slowly"
    assert paper_title(REPOSITORY, "overview") == "All papers together"


def test_the_moving_race_has_a_page(site):
    page = (site / "race.html").read_text(encoding="utf-8")
    assert "race.js" in page
    assert page.count("a still picture") == 3, "there are no results here"


def test_every_claim_and_finding_has_a_place(site):
    for file, written in CLAIMS.items():
        page = Page(site / "claims" / f"{file.parent.name}.html")
        assert {f"claim-{claim.id}" for claim in written.claims} <= page.identifiers
        page = Page(site / "claims" / "findings.html")
        assert {f"claim-{finding.id}" for finding in written.findings} <= page.identifiers


def test_every_declaration_has_a_place(site):
    page = Page(site / "reference.html")
    for registry in (METRICS, SOLUTIONS, OBSERVABLES):
        wanted = {f"{registry.kind.removesuffix('s')}-{name}" for name in registry}
        assert wanted <= page.identifiers


def test_every_word_for_what_a_theory_assumes_is_explained(extension):
    import boards

    page = boards.pages(REPOSITORY)["which_theory.md"]
    table, _, words = page.partition("## What the words mean")
    assert "equal pathway blocks, equal pairs" in table
    assert "\n| equal pairs | All pairs of domains have the same modes, and" in words
    assert "| one task |" in words, "a word behind `or`"


def test_every_function_has_a_place(site):
    page = Page(site / "api" / "functions.html")
    assert {f"neuralrace.{name}" for name in neuralrace.__all__} <= page.identifiers
    page = Page(site / "api" / "extending.html")
    functions = {name: each for name, each in vars(style).items() if callable(each)}
    own = {name for name, each in functions.items() if each.__module__ == style.__name__}
    own = {name for name in own if not name.startswith("_")}
    assert {f"neuralrace.figures.style.{name}" for name in own} <= page.identifiers


def test_functions_are_listed_and_describe_shared_arguments_once(site):
    text = (site / "api" / "functions.html").read_text(encoding="utf-8")
    head = text.partition('id="train-and-solve"')[0].rpartition("<h1>")[2]
    functions = [name for name in neuralrace.__all__ if not name.startswith("_")]
    assert all(f'href="#neuralrace.{name}"' in head for name in functions)
    assert text.count("<strong>learning_rate</strong>") == 1, "an argument of `specify`"
    assert text.count("<strong>**options</strong>") >= 5


def test_every_term_has_a_place(site):
    page = Page(site / "glossary.html")
    assert {f"term-{term}".replace(" ", "-") for term in TERMS} <= page.identifiers


def test_nothing_comes_from_elsewhere(site):
    files = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(files) > 100
    found = {file.name: ELSEWHERE.findall(file.read_text(encoding="utf-8")) for file in files}
    assert {name: places for name, places in found.items() if places} == {}


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://example.org/a.js">',
        '<link rel="stylesheet" href="//example.org/a.css">',
        "@font-face { src: url(https://example.org/a.woff2) }",
        '@import "https://example.org/a.css";',
    ],
)
def test_what_comes_from_elsewhere_is_seen(text):
    assert ELSEWHERE.search(text)


def test_links_lead_where_the_site_has_a_page(extension):
    from staging import places, relinked

    shown: set[str] = set()
    source = "../src/neuralrace/config/requirements.py"
    text = f"[a](../config/README.md#all-keys) [b]({source}) [c](none.md) d[0](1)"
    told = relinked(text, "docs/data_model.md", places(), shown)
    assert told.split() == [
        "[a](configuration.md#all-keys)",
        "[b](source/src/neuralrace/config/requirements.py.rst)",
        "[c](none.md)",
        "d[0](1)",
    ]
    assert shown == {"src/neuralrace/config/requirements.py"}
    assert relinked("[a](docs/reln.md)", "CONTRIBUTING.md", places(), shown) == "[a](reln.md)"
    picture = "../figures/slim/neural_race/natural_images.mnist.png"
    told = relinked(f"[a]({picture}) ![b]({picture})", "docs/panels.md", places(), shown)
    page = "gallery/neural_race/natural_images.rst"
    assert told == f"[a]({page}) ![b]({picture.removeprefix('../')})"


def test_first_page_is_plain_markdown_and_has_cards_in_the_site(extension):
    from staging import home

    page = DOCS / "index.md"
    text = page.read_text(encoding="utf-8")
    assert not re.search(r":::|\{\w+\}", text), "a git host shows it as it stands"
    links = [link.partition("#")[0] for link in re.findall(r"\]\((?!\w+:)(.+?)\)", text)]
    assert [link for link in links if not (page.parent / link).exists()] == []
    shown = home(text)
    assert shown.count("grid-item-card}") == 8
    assert "\n:::{grid-item-card} Claims\n:link: claims/index\n" in shown
    assert "\nGallery <gallery/index>\n" in shown.partition("{toctree}")[2]
    assert "](claims.md)" not in shown


def test_source_is_never_put_together_in_docs(extension):
    from sphinx.errors import ConfigError
    from staging import stage

    with pytest.raises(ConfigError, match="run `make docs`"):
        stage(SimpleNamespace(srcdir=DOCS))


def test_measured_values_are_told_where_there_are_results(extension, tmp_path):
    import verdicts

    (row, *_), _ = known_claims(CLAIMS)
    judged = row.model_copy(
        update={"verdict": "holds", "measured": 0.123456, "interval": (0.1, 0.2), "seeds": 7}
    )
    write_tables([judged], [], tmp_path)
    without = verdicts.pages(REPOSITORY, None)
    made = verdicts.pages(REPOSITORY, tmp_path)
    page = f"claims/{row.paper}.md"
    told = set(made[page].splitlines()) - set(without[page].splitlines())
    assert "- Measured: 0.123 [0.1, 0.2], n = 7" in told
    assert f"(claim-{row.id})=" in made[page]
    assert "make claims" in without["claims/index.md"]
    assert "make claims" not in made["claims/index.md"]


def test_without_results_pages_show_the_stored_verdicts_and_say_so(
    extension, tmp_path, monkeypatch
):
    import verdicts

    (row, *_), _ = known_claims(CLAIMS)
    judged = row.model_copy(
        update={"verdict": "holds", "measured": 0.123456, "interval": (0.1, 0.2), "seeds": 7}
    )
    stored = StoredVerdicts("abcdef" * 6, "python 3.11.7", [judged], [], ["half-time"])
    monkeypatch.setattr(verdicts, "stored_verdicts", lambda path, claims: stored)
    monkeypatch.setattr(verdicts, "paper_title", lambda repository, paper: paper)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "verdicts.json").touch()
    page = verdicts.pages(tmp_path, None)[f"claims/{row.paper}.md"]
    assert "- Measured: 0.123 [0.1, 0.2], n = 7" in page
    head = page.partition("\nBy ")[0]
    assert "those of the release (commit abcdefabcdef,\npython 3.11.7)" in head
    assert "changed since: {ref}`half-time <claim-half-time>`" in head


def test_pages_call_papers_by_their_titles(extension):
    import verdicts

    made = verdicts.pages(REPOSITORY, None)
    assert re.search(r"\n## Localisation: \d+\n", made["claims/findings.md"])
    assert ">Localisation</text>" in made["claims/verdicts.svg"]


def test_notebooks_say_where_they_lack_results(extension):
    from staging import without_output

    title = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": "# All"}
    told = json.loads(without_output(json.dumps({"cells": [title, title]})))["cells"]
    assert [cell["source"][:20] for cell in told] == ["# All", "> **Without output.*", "# All"]


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium to look at pages with")
def test_pages_are_whole_at_three_widths_and_searched(site, tmp_path):
    shutil.copy(Path(__file__).with_name("check.html"), site)
    pages = ",".join(f"{page}.html" for page in LOOKED_AT)
    address = f"{(site / 'check.html').as_uri()}#{pages}|{','.join(SEARCHED)}"
    command = [CHROMIUM, *QUIET, f"--user-data-dir={tmp_path}", "--dump-dom", address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    written = re.search(r'<pre id="seen">(.+?)</pre>', done.stdout)
    assert written is not None, done.stderr
    seen = json.loads(written[1])["pages"]
    searches = json.loads(written[1])["searches"]
    assert {w: p for w, p in SEARCHED.items() if p not in searches[w]} == {}, searches
    assert len(seen) == len(LOOKED_AT)
    for page, found in seen.items():
        assert found["broken"] == found["wrong"] == [], page
        assert found["beyond"] == [0, 0, 0], page
        assert found["maths"] == found["typeset"], page
    assert all(
        seen[f"theory/{name}.html"]["typeset"] > 100 for name in ("deep_linear", "make_haste")
    )
    console = re.findall(r"CONSOLE.*?\] (\".*)", done.stderr)
    assert console
    assert [line for line in console if re.search(r"Uncaught|Failed|Refused|Error", line)] == []
