"""Gating schemes: pathways that pairs of domains share, pairs that are trained, gates by sample.

What gates may be, in the experiments after Saxe, Sodhani and Lewallen (2022). Pairs of an input and
an output domain share pathways in blocks, from a pathway for every pair to one for all (figure 5a).
Every input domain is trained with some of the output domains, in a cyclic band, as in figure 4d, or
at random. And gates may depend on the sample: on the points of XoR one pathway that is always open,
pathways that are open on random half-spaces, or the source's four, each open on one example (figure
3b).
"""

import numpy as np
from jaxtyping import Bool, Int
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

from neuralrace.extensions.registry import Figure
from neuralrace.figures import diagrams, style
from neuralrace.networks.gates.always_on import AlwaysOnSamples
from neuralrace.networks.gates.half_space import HalfSpace
from neuralrace.results.cells import CellResults, Results

DARK, LIGHT = "0.25", "0.88"


@Figure(
    layout="a;b;c",
    height=4.6,
    heights=(1.0, 1.0, 1.0),
    cf={"a": "Fig. 5a", "b": "Fig. 4d", "c": "Fig. 3b"},
    reads={
        "generalisation_random pathways pathways_apart race xor_gated": {
            "trajectory": "",
        },
    },
)
def legend(results: Results) -> style.Handles:
    """Trained pairs and gates."""
    pairs = [
        Patch(facecolor=shade, label=label)
        for shade, label in ((DARK, "trained pair"), (LIGHT, "never seen"))
    ]
    return [*pairs, *diagrams.gate_handles()]


def panel_a(results: Results, ax: Axes) -> None:
    """Pairs of domains that share a pathway, in one colour."""
    blocks = sorted(map(_blocks, results.cells("race")), key=lambda block: block[0])
    axes = style.split(ax, 1, len(blocks), sharey=True)[0]
    for part, (size, numbers) in zip(axes, blocks, strict=True):
        colours = ListedColormap(style.sequential(int(numbers.max()) + 1))
        # Colours are shuffled, so that neighbouring blocks differ.
        shuffled = np.random.default_rng(0).permutation(int(numbers.max()) + 1)[numbers]
        image = style.heat(part, shuffled, 0, max(1, int(numbers.max())), aspect="equal")
        image.set_cmap(colours)
        _name_domains(part, len(numbers), f"$P$ = {size**2}, {numbers.max() + 1} pathways")
    axes[0].set_ylabel("input domain")
    ax.set_title(f"From {blocks[0][1].max() + 1} pathways to {blocks[-1][1].max() + 1}")


def panel_b(results: Results, ax: Axes) -> None:
    """Pairs of domains that are trained; the random mask is that of the first seed."""
    large = results.cell("pathways_apart")
    # The random mask with about as many trained pairs as the band.
    random = min(
        results.cells("generalisation_random"),
        key=lambda cell: abs(_mask(cell).sum() - _mask(large).sum()),
    )
    trained = {"band": results.cell("pathways"), "larger band": large, "random": random}
    axes = style.split(ax, 1, len(trained))[0]
    for part, (name, cell) in zip(axes, trained.items(), strict=True):
        mask = _mask(cell)
        style.heat(part, mask, 0, 1, aspect="equal", cmap="gray").set_cmap(
            ListedColormap([LIGHT, DARK])
        )
        _name_domains(part, len(mask), f"{name}, $K$ = {mask[0].sum()} of {len(mask)}")
    axes[0].set_ylabel("input domain")
    ax.set_title("Trained pairs in a band or at random, as many in each row and column")


def panel_c(results: Results, ax: Axes) -> None:
    """Networks of pathways side by side on XoR. Cells are the gates on the four examples."""
    cell = results.cell("xor_gated")
    network = cell.gated
    half = HalfSpace(name="half_space", pathways=len(cell.data.x))
    gates = {
        "always on": AlwaysOnSamples(name="always_on"),
        "half-spaces": half,
        network.gates.name.replace("_", " "): network.gates,
    }
    axes = style.split(ax, 1, len(gates))[0]
    for part, (name, scheme) in zip(axes, gates.items(), strict=True):
        wiring = network.model_copy(update={"gates": scheme}).wiring(cell.data)
        graph = wiring.architecture
        routes = dict(zip(graph.pathways, style.sequential(len(graph.pathways)), strict=True))
        strips = {f"hidden 1 of pathway {n + 1}": g for n, g in enumerate(wiring.pathway_gates)}
        names = {graph.inputs[0]: "$x$", graph.outputs[0]: "$y$"}
        diagrams.draw_network(part, graph, routes, strips, names, units=3, shape=2.2)
        part.set_title(name, loc="center")
    ax.set_title(f"Gates by sample: which of {len(cell.data.x)} examples a pathway is open on")


def _name_domains(ax: Axes, count: int, name: str) -> None:
    ax.set_xticks([])
    ax.set_yticks([0, count - 1], ["1", str(count)])
    ax.set_xlabel("output domain")
    ax.set_title(name, loc="center")


def _mask(cell: CellResults) -> Bool[np.ndarray, "input_domain output_domain"]:
    """Trained pairs of the first seed."""
    return cell.trained_pairs[0]


def _blocks(cell: CellResults) -> tuple[int, Int[np.ndarray, "input_domain output_domain"]]:
    """Number of domains along a side of a block, and the index of the block of each pair."""
    count = cell.spec.dataset.count
    size = cell.routing.families(count)[0].size
    side = np.arange(count) // size
    return size, side[:, None] * (count // size) + side
