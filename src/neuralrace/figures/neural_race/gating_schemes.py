"""Gating schemes: pathways that pairs of domains share, pairs that are trained, gates by sample.

What gates may be, in the experiments after Saxe, Sodhani and Lewallen (2022). Pairs of an input and
an output domain share pathways in blocks, from a pathway for every pair to one for all (figure 5a).
Every input domain is trained with some of the output domains: with neighbours, as in figure 4d, or
with random ones. And gates may depend on the sample: on the points of XoR one pathway that is
always open, pathways that are open on random half-spaces, or the source's four, each open on one
example (figure 3b). Nothing is trained here; all are drawn from specifications.
"""

import numpy as np
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.image import AxesImage
from matplotlib.patches import Patch

from neuralrace.extensions.registry import Figure
from neuralrace.figures import diagrams, domains, style
from neuralrace.networks.gates.always_on import AlwaysOnSamples
from neuralrace.networks.gates.half_space import HalfSpace
from neuralrace.results.cells import CellResults, Results

DARK, LIGHT = "0.25", "0.88"
PALE, MARKED = "#b5d0e3", style.COLOURS["gated"]
BLOCKS = ListedColormap(["#eaf2f7", PALE, MARKED])
"""Shades of neighbouring blocks, and of the block that is marked; open gates alone are white."""
HALF_SPACES = 14
"""Seed of the half-spaces, with which no two of them hold the same examples."""


@Figure(
    layout="aaaabb;cccccc",
    height=4.0,
    heights=(1.0, 1.3),
    cf={"a": "Fig. 5a", "b": "Fig. 4d", "c": "Fig. 3b"},
    reads={
        "generalisation_random pathways_apart race xor_gated": {
            "trajectory": "",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Pathways and pairs; gates have a key in their panel."""
    shades = {
        "one pathway": MARKED,
        "each pale block: another": PALE,
        "trained pair": DARK,
        "never seen": LIGHT,
    }
    return [Patch(facecolor=shade, label=label) for label, shade in shades.items()]


def panel_a(results: Results, ax: Axes) -> None:
    """Pairs of domains that share a pathway are a block, a square of one shade; one block of each
    scheme is marked. Numbers are those of pathways, and P the number of pairs in a block.
    """
    blocks = sorted(map(_blocks, results.cells("race")), key=lambda block: block[0])
    axes = style.split(ax, 1, len(blocks))[0]
    axes[0].set_ylabel("output domain")
    for part, (size, shades) in zip(axes, blocks, strict=True):
        pathways = (len(shades) // size) ** 2
        counts = {"pair": size**2, "pathway": pathways}
        pairs, name = (f"{n} {what}{'s' if n > 1 else ''}" for what, n in counts.items())
        name = f"$P$ = {pairs}\n{name}"
        image = _draw(part, shades, BLOCKS, name)
        if size > 1:
            for row, column in np.ndindex(2 * (len(shades) // size,)):
                middle = (row + 0.5) * size - 0.5, (column + 0.5) * size - 0.5
                shade = float(shades[row * size, column * size])
                number = row * (len(shades) // size) + column + 1
                style.write_entry(part, image, middle, shade, str(number))
    ax.set_title("The larger the blocks, the fewer pathways")


def panel_b(results: Results, ax: Axes) -> None:
    """Pairs of domains that are trained, as many in each row and column; the random pairs are those
    of the first run.
    """
    band = results.cell("pathways_apart")
    # The random mask with about as many trained pairs as the band.
    random = min(
        results.cells("generalisation_random"),
        key=lambda cell: abs(domains.mask(cell).sum() - domains.mask(band).sum()),
    )
    cells = {"neighbours": band, "random": random}
    shades = ListedColormap([LIGHT, DARK])
    axes = style.split(ax, 1, len(cells))[0]
    axes[0].set_ylabel("output domain")
    for part, (name, cell) in zip(axes, cells.items(), strict=True):
        mask = domains.mask(cell)
        _draw(part, mask.T, shades, f"{name}\n{mask[0].sum()} of {len(mask)} outputs")
    ax.set_title("Trained: neighbours or random")


def panel_c(results: Results, ax: Axes) -> None:
    """Networks of pathways side by side on XoR. Cells are the gates of a pathway on the four
    examples.
    """
    cell = results.cell("xor_gated")
    network = cell.gated
    half = HalfSpace(name="half_space", pathways=len(cell.data.x), seed=HALF_SPACES)
    gates = {
        "always open": AlwaysOnSamples(name="always_on"),
        "open on half-spaces": half,
        "each open on one example": network.gates,
    }
    widths = (0.55, 1.0, 1.0)
    axes = style.split(ax, 1, len(gates), width_ratios=widths)[0]
    for part, width, (name, scheme) in zip(axes, widths, gates.items(), strict=True):
        wiring = network.model_copy(update={"gates": scheme}).wiring(cell.data)
        graph = wiring.architecture
        routes = dict.fromkeys(graph.pathways, "0.45")  # blue is one pathway in the key
        strips = {f"hidden 1 of pathway {n + 1}": g for n, g in enumerate(wiring.pathway_gates)}
        names = {graph.inputs[0]: "$x$", graph.outputs[0]: "$y$"}
        # Pathways are as high in all networks, so that nodes are as large.
        shape = 1.5 * width * half.pathways / len(graph.pathways)
        diagrams.draw_network(part, graph, routes, strips, names, 3, shape, numbered=True)
        part.set_title(name, loc="center")
    points = [f"{n}: ({one:+.0f}, {two:+.0f})" for n, (one, two) in enumerate(cell.data.x, 1)]
    text = "\n".join(["examples of XoR", *points])
    style.note_at(axes[0], text, (0.5, 0.02), (0, 0), xycoords="axes fraction", ha="center")
    axes[0].legend(handles=diagrams.gate_handles(), loc="upper center")
    ax.set_title("Gates open always, by half-space or example")


def _draw(ax: Axes, shades: np.ndarray, colours: ListedColormap, name: str) -> AxesImage:
    """A matrix of pairs, input domains across and output domains down."""
    count = len(shades)
    image = style.heat(ax, shades, 0, colours.N - 1, aspect="equal", cmap=colours)
    ax.spines[:].set_visible(True)
    ax.set_xticks([0, count - 1], ["1", str(count)])
    ax.set_yticks([0, count - 1], ["1", str(count)])
    ax.set_xlabel("input domain", labelpad=1)
    ax.set_title(name, loc="center")
    return image


def _blocks(cell: CellResults) -> tuple[int, Int[np.ndarray, "output_domain input_domain"]]:
    """Number of domains along a side of a block; shades of blocks, in turn, the first marked."""
    count = cell.spec.dataset.count
    size = cell.routing.families(count)[0].size
    side = np.arange(count) // size
    shades = (side[:, None] + side) % 2
    shades[:size, :size] = 2
    return size, shades
