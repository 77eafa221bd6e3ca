"""Pages of the gallery: one for each figure, with its caption, its claims and its source."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatch
from io import BytesIO
from itertools import groupby
from pathlib import Path

from PIL import Image
from rest import heading, indented, words
from sight import page as in_grey
from sphinx.errors import ConfigError

from neuralrace.claims.spec import ClaimFile, Claims, read_claims
from neuralrace.extensions.registry import FIGURES, Entry
from neuralrace.extensions.source import docstring
from neuralrace.figures.caption import title
from neuralrace.figures.inputs import experiments_of
from neuralrace.figures.save import THUMBNAIL

EDGE = 4
"""Pixels around the panel of a thumbnail; below it the axis label ends."""
THUMBNAILS = "thumbnails"
"""Folder of the site for thumbnails."""
Cited = Mapping[str, list[str]]
"""Claims and findings that name a figure, by the figure; or that read an experiment, by a glob."""
ABOUT = ("/race", "/panels", "/figure_style")
"""Pages about figures, which stand elsewhere."""
INTRODUCTION = """\
Simulation is coloured, its mean over seeds a line and its range a band. Theory is dashed and black,
solved from the same initial weights, with nothing fitted. Each figure has a page, with its caption,
the command that makes it anew, the :term:`claims <claim>` that it shows, others on the same
experiments, and its source.
"""


def pages(repository: Path, shown: set[str]) -> dict[str, str]:
    """The pages by where they stand in the site.

    Args:
        repository: its root.
        shown: takes the modules of the figures.
    """
    claims = read_claims(sorted(repository.glob("config/*/claims.yaml")))
    cited, read = _cited(claims), _read(claims)
    index = [heading("Gallery", "="), INTRODUCTION]
    made: dict[str, str] = {}
    papers: list[str] = []
    own = [entry for entry in FIGURES.values() if entry.path.is_relative_to(repository)]
    for paper, entries in groupby(own, key=lambda entry: entry.name.partition("/")[0]):
        listed = list(entries)
        about = paper_title(repository, paper)
        shown |= {entry.path.relative_to(repository).as_posix() for entry in listed}
        made |= {f"gallery/{e.name}.rst": _figure(e, cited, read, repository) for e in listed}
        cards = _cards(listed, repository)
        pages_of_paper = [heading(about, "="), cards, _contents(entry.name for entry in listed)]
        made[f"gallery/{paper}.rst"] = "\n".join(pages_of_paper)
        papers.append(paper)
        index += [heading(about, "-"), cards]
    made["gallery/sight.rst"] = in_grey((entry.name, picture(entry.name)) for entry in own)
    index.append(_contents([*papers, "sight", *ABOUT]))
    return made | {"gallery/index.rst": "\n".join(index)}


def _contents(pages: Iterable[str]) -> str:
    return ".. toctree::\n   :hidden:\n\n" + "".join(f"   {page}\n" for page in pages)


def paper_title(repository: Path, paper: str) -> str:
    """What a paper is about: the title of its page of theory, without what follows a colon.

    Without such a page, it is the first line of the package of its figures.
    """
    page = repository / "docs" / "theory" / f"{paper}.md"
    if page.exists():
        line = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        return words(line.partition(":")[0])
    package = repository / "src" / "neuralrace" / "figures" / paper / "__init__.py"
    return words(docstring(package).partition("\n")[0].removesuffix("."))


def anchor(figure: str) -> str:
    """The label of a figure `paper/figure`."""
    return f"figure-{figure.replace('/', '-')}"


def picture(figure: str) -> str:
    """Where the small picture of a figure stands, in the repository and in the site."""
    return f"figures/slim/{figure}.png"


def page_of(path: str) -> str:
    """Where the site has the page of a small picture; the picture itself if it is of no figure."""
    figure = Path(path).relative_to("figures/slim").with_suffix("").as_posix().partition(".")[0]
    return f"gallery/{figure}.rst" if figure in FIGURES else path


def shown_picture(figure: str, repository: Path) -> str:
    """The picture that a page shows: of any size, where figures have been drawn; else the small."""
    large = f"figures/{figure}.svg"
    return large if (repository / large).is_file() else picture(figure)


def thumbnail(figure: str, repository: Path) -> bytes:
    """A PNG file with the first panel of a figure.

    Raises:
        ConfigError: there is no such picture, or it does not say where its first panel is.
    """
    try:
        with Image.open(repository / picture(figure)) as image, BytesIO() as file:
            left, top, right, bottom = map(float, image.info[THUMBNAIL].split())
            width, height = image.size
            box = (left * width - EDGE, top * height - EDGE, right * width + EDGE, bottom * height)
            image.convert("RGB").crop(tuple(map(round, box))).save(file, format="PNG")
            return file.getvalue()
    except (OSError, KeyError):
        raise ConfigError(f"{picture(figure)}: run `make figures`, which draws it") from None


def thumbnails(repository: Path) -> dict[str, bytes]:
    """The thumbnail of each figure, by its path in the site.

    Raises:
        ConfigError: as `thumbnail`.
    """
    own = [name for name, entry in FIGURES.items() if entry.path.is_relative_to(repository)]
    return {f"{THUMBNAILS}/{name}.png": thumbnail(name, repository) for name in own}


def _variants(entry: Entry, repository: Path) -> list[str]:
    """Pictures of a figure from other configurations of its paper, `<figure>.<configuration>`."""
    folder = repository / "figures" / "slim"
    found = sorted(folder.glob(f"{entry.name}.*.png"))
    return [path.relative_to(folder).as_posix().removesuffix(".png") for path in found]


def _texts(figure: str, repository: Path) -> tuple[str, str]:
    """What stands for a picture where it is not seen, and its caption, as the picture carries them.

    Raises:
        ConfigError: there is no such picture, or it carries none.
    """
    try:
        with Image.open(repository / picture(figure)) as image:
            return image.info["Description"], image.info["Comment"]
    except (OSError, KeyError):
        raise ConfigError(f"{picture(figure)}: run `make figures`, which draws it") from None


def _picture(figure: str, command: str, repository: Path) -> str:
    """A picture with its caption and the command that makes it."""
    alternative, caption = _texts(figure, repository)
    return f"""\
.. figure:: /{shown_picture(figure, repository)}
   :alt: {alternative}
   :class: site-figure
   :width: 100%

{indented(caption)}
.. code-block:: console

   $ snakemake --cores all {command}
"""


def _figure(entry: Entry, cited: Cited, read: Cited, repository: Path) -> str:
    """The page of a figure."""
    module = entry.path.relative_to(repository).as_posix()
    paper = entry.name.partition("/")[0]
    pictures = [_picture(entry.name, f"figures/{entry.name}.png", repository)]
    for variant in _variants(entry, repository):
        changes = variant.rpartition(".")[2]
        made = f"results/{changes}/figures/{entry.name}.png"
        command = f"{made} --config settings=config/{paper}/{changes}.yaml"
        pictures.append(_picture(variant, command, repository))
    experiments = experiments_of(entry.name)
    shows = cited.get(entry.name, [])
    others = (
        claim
        for glob, claims in read.items()
        for claim in claims
        if claim not in shows and any(fnmatch(each, glob) for each in experiments)
    )
    facts = {
        "Claims": _links(shows) or "none names it",
        "Other claims on the same experiments": _links(dict.fromkeys(others)),
        "Source": f":doc:`{module} </source/{module}>`",
    }
    fields = "".join(f":{name}: {text}\n" for name, text in facts.items() if text)
    return f"{heading(words(title(entry)), '=', anchor(entry.name))}\n{''.join(pictures)}\n{fields}"


def _links(claims: Iterable[str]) -> str:
    return ", ".join(f":ref:`{each} <claim-{each}>`" for each in claims)


def _cards(entries: list[Entry], repository: Path) -> str:
    cards = (
        f".. grid-item-card:: {words(title(entry))}\n"
        f"   :img-top: /{THUMBNAILS}/{entry.name}.png\n"
        f"   :img-alt: {_texts(entry.name, repository)[0]}\n"
        f"   :link: {anchor(entry.name)}\n   :link-type: ref\n   :class-card: site-thumbnail\n"
        for entry in entries
    )
    grid = ".. grid:: 1 2 2 3\n   :gutter: 2\n\n"
    return grid + "\n".join(indented(card) for card in cards)


def _cited(claims: Claims) -> Cited:
    found: dict[str, list[str]] = {}
    written: ClaimFile
    for written in claims.values():
        for statement in written.statements:
            if statement.figure:
                found.setdefault(statement.figure, []).append(statement.id)
    return found


def _read(claims: Claims) -> Cited:
    found: dict[str, list[str]] = {}
    for written in claims.values():
        for statement in written.statements:
            globs = {glob for measure in statement.measures() for glob in measure.cells}
            for experiment in sorted({"/".join(glob.split("/")[:2]) for glob in globs}):
                found.setdefault(experiment, []).append(statement.id)
    return found
