"""The source of the site, put together from the repository, generated pages among them.

Links in pages stay as a git host shows them, from file to file. Where a page stands elsewhere in
the site they are written anew, and a file that is no page is shown as a page of its source.
"""

import json
import os
import posixpath
import re
from pathlib import Path

import boards
import gallery
import race
import verdicts
from rest import heading
from sphinx.application import Sphinx
from sphinx.errors import ConfigError

from neuralrace.config.manual import REFERENCE_PAGE, key_tables
from neuralrace.config.reference import reference

REPOSITORY = Path(__file__).parents[2]
WRITTEN = ("docs/*.md", "docs/theory/*.md", "docs/api/*.rst", "examples/*.ipynb")
MOVED = {
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "extending.md",
    "config/README.md": "configuration.md",
    "docs/claims.md": "claims/rules.md",
}
"""Pages that stand elsewhere than in `docs/`, and where the site has them."""
LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")
"""Target of a Markdown link to a file, without a place in it."""
HOME = "docs/index.md"
"""The first page. Its list of parts has a card for each in the site, and becomes the contents."""
PARTS = {
    "../figures/slim": "gallery/index.rst",
    "benchmark.md": "board.md",
    "claims.md": "claims/index.md",
}
"""Where links of the first page lead that have a page of their own in the site."""
PART = re.compile(r"^- \[(.+)\]\((.+)\): (.+)\n", re.MULTILINE)
"""An entry of that list: title, link and text."""
DIAGRAMS = ("docs/rules.svg", "docs/run.svg")
PICTURES = (".png", ".svg")
READS_RESULTS = re.compile(r"\b(open_results|open_tree|to_frame|claims_table)\b")
NOTE = (
    "> **Without output.** This notebook reads the results of all papers, and there were none when "
    "the site was built. `make figures`, then `make docs`, fills it in."
)
KEYS = """# All keys

For anyone who writes a configuration: every key with its type, default and meaning, from the
docstrings of the models. `neuralrace keys` prints the same.

"""
LANGUAGES = {".py": "python", ".yaml": "yaml", ".md": "markdown", ".toml": "toml"}


def places() -> dict[str, str]:
    """Where the site has each written page, by its path in the repository."""
    found = {path for glob in WRITTEN for path in REPOSITORY.glob(glob)}
    names = sorted(path.relative_to(REPOSITORY).as_posix() for path in found)
    return {name: name.removeprefix("docs/") for name in names} | MOVED


def source_page(path: str) -> str:
    """Where the site shows a file of the repository."""
    return f"source/{path}.rst"


def relinked(text: str, path: str, placed: dict[str, str], shown: set[str]) -> str:
    """A page with its links as they are in the site; those to pictures lead to their pages.

    Args:
        text: Markdown, or a notebook.
        path: where it stands in the repository.
        placed: of all pages; see `places`.
        shown: takes the files that are linked and no pages.
    """

    def target(link: re.Match[str]) -> str:
        there = posixpath.normpath(posixpath.join(posixpath.dirname(path), link[1]))
        if not (REPOSITORY / there).is_file():
            return link[1]  # Sphinx tells where it is broken
        if there.startswith("figures/slim/"):
            is_shown = link.string[: link.start()].rpartition("[")[0].endswith("!")
            site = there if is_shown else gallery.page_of(there)
        elif there.endswith(PICTURES):
            site = there
        else:
            site = placed.get(there, source_page(there))
            shown.update({there} - set(placed))
        return posixpath.relpath(site, posixpath.dirname(placed[path]) or ".")

    return LINK.sub(target, text)


def home(text: str) -> str:
    """The first page as the site shows it, from Markdown that any git host shows."""
    text = LINK.sub(lambda link: PARTS.get(link[1], link[1]), text)
    parts = list(PART.finditer(text))
    cards, entries = "", ""
    for title, link, words in (part.groups() for part in parts):
        page, told = link.rpartition(".")[0], words[0].upper() + words[1:]
        cards += f":::{{grid-item-card}} {title}\n:link: {page}\n:link-type: doc\n{told}\n:::\n\n"
        entries += f"{title} <{page}>\n"
    before, after = text[: parts[0].start()], text[parts[-1].end() :]
    grid = f"::::{{grid}} 1 2 2 4\n:gutter: 3\n\n{cards}::::\n"
    return f"{before}{grid}{after}\n```{{toctree}}\n:hidden:\n\n{entries}```\n"


def without_output(notebook: str) -> str:
    """A notebook that says, below its title, that it was not run."""
    content = json.loads(notebook)
    note = {"cell_type": "markdown", "id": "without-output", "metadata": {}, "source": NOTE}
    content["cells"].insert(1, note)
    return json.dumps(content)


def shown_source(path: str, root: Path) -> str:
    """The page of a file, in a source at `root`; the search leaves it out."""
    file = os.path.relpath(REPOSITORY / path, (root / source_page(path)).parent)
    language = LANGUAGES.get(Path(path).suffix, "text")
    shown = f".. literalinclude:: {file}\n   :language: {language}\n"
    return f":orphan:\n:nosearch:\n\n{heading(path, '=')}\n{shown}"


def stage(app: Sphinx) -> None:
    """Brings the source of the site up to date; what is as it was is not touched.

    Raises:
        ConfigError: the source is the `docs` folder itself, where nothing is to be written.
    """
    root = Path(app.srcdir)
    if root.resolve() == REPOSITORY / "docs":
        raise ConfigError("docs/ is a part of the site's source only: run `make docs`")
    results = REPOSITORY / app.config.results_folder
    judged = (results / "claims.json").is_file()
    placed, shown = places(), set[str]()
    pages = {}
    for path, site in placed.items():
        text = (REPOSITORY / path).read_text(encoding="utf-8")
        if site.endswith(".ipynb") and READS_RESULTS.search(text) and not judged:
            app.config.nb_execution_excludepatterns.append(site)
            text = without_output(text)
        pages[site] = relinked(home(text) if path == HOME else text, path, placed, shown)
    pages |= {"keys.md": KEYS + key_tables() + "\n", REFERENCE_PAGE: reference()}
    pages |= gallery.pages(REPOSITORY, shown)
    pages |= verdicts.pages(REPOSITORY, results if judged else None)
    pages |= boards.pages(REPOSITORY)
    pages[race.PAGE] = race.page(results if judged else None)
    pages |= {source_page(path): shown_source(path, root) for path in shown}
    for folder, _, files in os.walk(root):  # goes into no link
        for file in (Path(folder, name) for name in files):
            if file.relative_to(root).as_posix() not in pages:
                file.unlink()
    for site, text in pages.items():
        page = root / site
        if not page.is_file() or page.read_text(encoding="utf-8") != text:
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(text, encoding="utf-8")
    for name, content in gallery.thumbnails(REPOSITORY).items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    linked = {
        "figures": REPOSITORY / "figures",
        "examples/results": results,
        **{name: REPOSITORY / name for name in DIAGRAMS},
    }
    for name, target in linked.items():
        link = root / name
        link.unlink(missing_ok=True)
        if target.exists():
            link.parent.mkdir(exist_ok=True)
            link.symlink_to(target)


def setup(app: Sphinx) -> dict[str, bool]:
    """Makes this an extension of Sphinx."""
    app.add_config_value("results_folder", "results", "env", [str])
    app.connect("builder-inited", stage, priority=1)  # before any other reads the source
    return {"parallel_read_safe": True}
