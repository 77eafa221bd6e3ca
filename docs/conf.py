"""The site: `make docs` builds it, offline and strictly, from the source that `staging` makes."""

import sys
from importlib import metadata
from pathlib import Path

from pygments.lexers import PythonLexer
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

JUDGED = [path.parent.name for path in Path(__file__).parents[1].glob("config/*/claims.yaml")]

project = "neuralrace"
author = "The neuralrace authors"
project_copyright = author
release = metadata.version("neuralrace")

extensions = [
    "staging",
    "docstrings",
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx-mathjax-offline",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["examples/results"]  # where notebooks find them
highlight_language = "none"
toc_object_entries_show_parents = "hide"

# Markdown and notebooks
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "cache"
nb_execution_cache_path = str(Path(__file__).parents[1] / ".cache" / "docs" / "notebooks")
nb_execution_excludepatterns: list[str] = []  # staging adds those that lack results
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # by default two scripts from elsewhere
nb_merge_streams = True

# mathematics; the macros are those of the quoted texts
mathjax3_config = {
    "tex": {
        "macros": {
            "Wd": "W^{d}",
            "We": "W^{e}",
            "data": r"{\mathrm{data}}",
            "degree": r"^\circ",
            "eps": r"\epsilon",
            "hidden": r"{\mathrm{hidden}}",
            "input": r"{\mathrm{input}}",
            "ndot": [r"\mathbin{\cdot_{#1}}", 1],
            "norm": [r"\lVert #1 \rVert", 1],
            "ol": [r"\overline{#1}", 1],
            "output": r"{\mathrm{output}}",
        }
    }
}

# Python
autosummary_generate = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
default_role = "py:obj"
maximum_signature_line_length = 80
nitpicky = True
nitpick_ignore_regex = [
    # backticks in docstrings name arguments, keys and values besides objects
    ("py:obj", ".*"),
    # other libraries, whose inventories are on the network; jaxtyping names arrays so
    (
        "py:.*",
        r"(annotated_types|collections|contextlib|jax|jaxtyping|matplotlib|networkx|np|numpy|nx|pandas|pathlib"
        r"|pydantic|xarray|xr)\..*",
    ),
    ("py:class", "FieldInfo|Ge|Gt|MinLen|NoneType|ConfigModel|Strict|ndarray"),
    # shapes of arrays
    ("py:class", "'.*"),
    # classes of single datasets, graphs and trainings; their modules explain them
    ("py:class", r"neuralrace\.training\.settings\.Training"),
    ("py:class", r"neuralrace\.datasets\.(features|image_domains|images|marginals)\..*"),
    ("py:class", r"neuralrace\.networks\.gates\.(architecture\.Pathway|effective\.PathwayModes)"),
]

# HTML
html_theme = "pydata_sphinx_theme"
html_title = f"neuralrace {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["race.js", "tables.js"]
html_copy_source = False
html_show_sourcelink = False
html_sidebars = {"index": [], "start": []}
html_theme_options = {
    "footer_end": [],
    "footer_start": ["copyright"],
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "secondary_sidebar_items": {
        "**": ["page-toc"],
        # room for wide tables
        **{f"claims/{page}": [] for page in (*JUDGED, "findings", "index")},
        "gallery/index": [],
        "index": [],
        "panels": [],
    },
    "show_nav_level": 1,
    "show_toc_level": 1,
}


def setup(app: Sphinx) -> None:
    """Makes known what Pygments does not know: Snakemake reads almost as Python."""
    app.add_lexer("snakemake", PythonLexer)
