"""Pages of the claims and findings, as they came out here, or else in the release."""

from pathlib import Path

from gallery import anchor, paper_title

from neuralrace.claims.pages import Links, findings_page, index_page, paper_page
from neuralrace.claims.picture import picture
from neuralrace.claims.spec import read_claims
from neuralrace.claims.stored import StoredVerdicts, stored_verdicts
from neuralrace.claims.table import by_paper, read_tables

STORED = """\
:::{{note}}
This site was built without results, so the values are those of the release (commit {commit:.12},
{versions}). For values of your own, run `make claims` and then `make docs`.{stale}
:::
"""
STALE = " Without a value, as they were changed since: {}."
CONTENTS = """
:::{toctree}
:hidden:

The rules <rules>
"""
LINK = "{{ref}}`{0} <claim-{0}>`".format


def pages(repository: Path, results: Path | None) -> dict[str, str]:
    """The pages by where they stand in the site.

    Args:
        repository: its root.
        results: holds `claims.json` and `findings.json`; None where nothing was judged.

    Raises:
        UserError: a mistake in a claim, or tables that are none.
    """
    written = read_claims(sorted(repository.glob("config/*/claims.yaml")))
    if results:
        (claims, findings), note = read_tables(results), ""
    else:
        stored = stored_verdicts(repository / "config" / "verdicts.json", written)
        claims, findings, note = stored.claims, stored.findings, _note(stored)
    papers = by_paper(claims)
    titles = {row.paper: paper_title(repository, row.paper) for row in (*claims, *findings)}
    links = Links(
        target="(claim-{})=".format,
        claim=LINK,
        elsewhere=LINK,
        figure=lambda name: f"{{ref}}`{name} <{anchor(name)}>`",
        paper=titles.__getitem__,
    )
    made = {
        f"claims/{paper}.md": "\n".join([f"(claims-{paper})=", *paper_page(rows, links)])
        for paper, rows in papers.items()
    }
    made["claims/findings.md"] = "\n".join(findings_page(findings, links))
    of = {paper: f"{{doc}}`{titles[paper]} <{paper}>`" for paper in papers}
    index = index_page(claims, of, "verdicts.svg", "`results/claims.csv`")
    listed = "".join(f"{titles[paper]} <{paper}>\n" for paper in papers) + "findings\n"
    made["claims/index.md"] = "\n".join([*index, CONTENTS + listed + ":::\n"])
    for name, text in made.items():
        title, _, rest = text.partition("\n\n")
        made[name] = f"{title}\n\n{note}{rest}"
    address = "{paper}.html#claim-{claim}".format
    made["claims/verdicts.svg"] = picture(claims, address, titles)
    return made


def _note(stored: StoredVerdicts) -> str:
    stale = STALE.format(", ".join(map(LINK, stored.stale))) if stored.stale else ""
    return STORED.format(commit=stored.commit, versions=stored.versions, stale=stale) + "\n"
