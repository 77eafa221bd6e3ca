"""Pages of the claims and findings, as they came out, or as they are known to come out."""

from pathlib import Path

from gallery import anchor, paper_title

from neuralrace.claims.judge import known_claims
from neuralrace.claims.pages import Links, findings_page, index_page, paper_page
from neuralrace.claims.picture import picture
from neuralrace.claims.spec import read_claims
from neuralrace.claims.table import by_paper, read_tables

WITHOUT = """\
:::{note}
This site was built without results: statuses are those that are known to come out. For measured
values, run `make claims` and then `make docs`.
:::
"""
CONTENTS = """
:::{toctree}
:hidden:

The rules <rules>
"""
LINK = "{{ref}}`{0} <claim-{0}>`".format
LINKS = Links("(claim-{})=".format, LINK, LINK, lambda name: f"{{ref}}`{name} <{anchor(name)}>`")


def pages(repository: Path, results: Path | None) -> dict[str, str]:
    """The pages by where they stand in the site.

    Args:
        repository: its root.
        results: holds `claims.json` and `findings.json`; None where nothing was judged.

    Raises:
        UserError: a mistake in a claim, or tables that are none.
    """
    known = known_claims(read_claims(sorted(repository.glob("config/*/claims.yaml"))))
    claims, findings = read_tables(results) if results else known
    papers = by_paper(claims)
    made = {
        f"claims/{paper}.md": "\n".join([f"(claims-{paper})=", *paper_page(rows, LINKS)])
        for paper, rows in papers.items()
    }
    made["claims/findings.md"] = "\n".join(findings_page(findings, LINKS))
    titles = {paper: paper_title(repository, paper) for paper in papers}
    links = {paper: f"{{doc}}`{title} <{paper}>`" for paper, title in titles.items()}
    index = list(index_page(claims, links, "verdicts.svg", "`results/claims.csv`"))
    listed = "".join(f"{title} <{paper}>\n" for paper, title in titles.items()) + "findings\n"
    notes = [] if results else ["", WITHOUT]
    made["claims/index.md"] = "\n".join([*index, *notes, CONTENTS + listed + ":::\n"])
    made["claims/verdicts.svg"] = picture(claims, "{paper}.html#claim-{claim}".format)
    return made
