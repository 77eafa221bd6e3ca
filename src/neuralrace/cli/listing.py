"""Names and one-line descriptions for `neuralrace list`.

A description is the first sentence of a docstring, of a comment in `config/`, or of a claim. The
models of a configuration take longer to import than all declarations take to read, so that they are
imported for the kinds that need them.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from inspect import getdoc
from typing import Any, get_args

from neuralrace.extensions.model import ConfigModel
from neuralrace.extensions.registry import FIGURES, METRICS, OBSERVABLES, SOLUTIONS, Entry

DECLARED: dict[str, Mapping[str, Entry[Any]]] = {
    "figures": FIGURES,
    "metrics": METRICS,
    "solutions": SOLUTIONS,
    "observables": OBSERVABLES,
}
CLASSES = ("datasets", "networks", "gates", "initialisers", "optimisers")
KINDS = ("papers", "experiments", "claims", *DECLARED, *CLASSES, "requirements")
"""Kinds of names that `neuralrace list` knows."""


def descriptions(kind: str) -> dict[str, str]:
    """One-line description of every name of a kind, one of `KINDS`.

    Raises:
        UserError: a file in `config/` cannot be read.
    """
    if kind in DECLARED:
        return {name: _first(entry.text) for name, entry in DECLARED[kind].items()}
    if kind in CLASSES:
        texts = [(_name(cls), _first(cls.__doc__ or "")) for cls in classes(kind)]
        return {n: " / ".join(text for other, text in texts if other == n) for n, _ in texts}
    if kind == "requirements":
        from neuralrace.config.requirements import REQUIREMENTS

        return {name: _first(getdoc(each) or "") for name, each in sorted(REQUIREMENTS.items())}
    if kind == "claims":
        from neuralrace.claims.spec import read_claims
        from neuralrace.config.load import paper_files

        papers = read_claims(paper_files("claims.yaml")).values()
        return {each.id: each.statement for claims in papers for each in claims.statements}
    return _commented(kind)


def classes(kind: str) -> Sequence[type[ConfigModel]]:
    """The classes of a kind, one of `CLASSES`."""
    from neuralrace.config.cell import DATASETS, INITIALISERS, NETWORKS
    from neuralrace.networks.gated import SAMPLE_SCHEMES
    from neuralrace.networks.routing import DOMAIN_SCHEMES, PAIRS
    from neuralrace.training.settings import OPTIMISERS

    return {
        "datasets": DATASETS,
        "networks": NETWORKS,
        "gates": (*SAMPLE_SCHEMES, *DOMAIN_SCHEMES, *PAIRS),
        "initialisers": INITIALISERS,
        "optimisers": OPTIMISERS,
    }[kind]


def experiments(content: Mapping[str, Any]) -> Iterator[str]:
    """Names of experiments in a configuration, `paper/experiment`; malformed parts are skipped."""
    papers = content.get("experiments")
    for paper, inside in papers.items() if isinstance(papers, Mapping) else ():
        yield from (f"{paper}/{name}" for name in (inside if isinstance(inside, Mapping) else ()))


def _commented(kind: str) -> dict[str, str]:
    """Descriptions from comments: the first in a paper's file, the last above an experiment."""
    from neuralrace.config.load import paper_files, read_file

    descriptions: dict[str, str] = {}
    for path in paper_files():
        text = path.read_text(encoding="utf-8")
        for name in experiments(read_file(path)):
            paper, experiment = name.split("/", 1)
            if kind == "papers":
                descriptions[paper] = _comment(text, "")
            else:  # a comment also describes the experiments that follow without a comment
                previous = next(reversed(descriptions), "")
                same = descriptions[previous] if previous.startswith(f"{paper}/") else ""
                descriptions[name] = _comment(text, f"{experiment}:") or same
    return descriptions


def _comment(text: str, above: str) -> str:
    lines = re.search(rf"(?m)((?:^ *#.*\n)+) *{re.escape(above)}", text)
    return _first(re.sub(r"(?m)^ *# ?", "", lines[1])) if lines else ""


def _first(text: str) -> str:
    """The first sentence of a text; a full stop before a lower-case letter does not end it."""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z])", paragraph)[0]


def _name(cls: type[ConfigModel]) -> str:
    return get_args(cls.model_fields["name"].annotation)[0]
