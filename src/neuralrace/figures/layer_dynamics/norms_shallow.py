"""Layer norms, their product and its bound in the shallowest linear network (fig. 1 i)."""

from matplotlib.figure import Figure as Canvas

from neuralrace.figures import style
from neuralrace.records.results import Results
from neuralrace.registry import Figure


@Figure(
    reads={
        "growth": {
            "trajectory": "layer_norm",
            "metrics": "norm_product product_norm quoted_strength_bound strength_bound",
        },
    }
)
def draw(results: Results) -> Canvas:
    """All norms of one network in one panel for each init scale."""
    cell = min(results.cells("growth"), key=lambda cell: len(cell.spec.layered.hidden))
    norms, time = cell.get("trajectory", "layer_norm"), cell.flow_time
    metrics = {
        name: cell.get("metrics", name)
        for name in ("product_norm", "norm_product", "strength_bound", "quoted_strength_bound")
    }
    target = float((cell.strength**2).sum() ** 0.5)  # the Frobenius norm of sigma_yx
    layers = norms["layer"].values
    looks = {
        **{
            layer: {"color": colour}
            for layer, colour in zip(layers, style.ordered(len(layers)), strict=True)
        },
        "product_norm": {"color": style.distinct(1), "linestyle": style.LINES[1]},
        "norm_product": {"color": style.distinct(3), "linestyle": style.LINES[3]},
    }
    scales = norms["init_scale"].values
    figure, axes = style.panels(len(scales), height=1.75, sharex=True)
    for index, ax in enumerate(axes[:, 0]):
        at = {"init_scale": index}
        for layer in layers:
            style.over_seeds(ax, time, norms.isel(at).sel(layer=layer), **looks[layer])
        for name in ("product_norm", "norm_product"):
            style.over_seeds(ax, time, metrics[name].isel(at), **looks[name])
        ax.axhline(target, **style.GUIDE)
        ax.plot(time, metrics["strength_bound"].isel(at).mean("seed"), **style.THEORY)
        ax.plot(time, metrics["quoted_strength_bound"].isel(at).mean("seed"), **style.PAPER)
        ax.set(yscale="log", ylabel="Frobenius norm")
    axes[-1, 0].set(xlabel=style.FLOW_TIME, xlim=(0, style.settled(norms, time)))
    style.letters(axes[:, 0], [f"init scale {scale:g}" for scale in scales])
    product = "".join(f"W_{layer}" for layer in layers[::-1])
    factors = "".join(f"|W_{layer}|" for layer in layers[::-1])
    entries = [
        *(style.entry(f"$|W_{layer}|$", **looks[layer]) for layer in layers),
        style.entry(f"$|{product}|$", **looks["product_norm"]),
        style.entry(r"$|\Sigma^{yx}|$", **style.GUIDE),
        style.entry(f"${factors}$", **looks["norm_product"]),
        style.entry("its bound, constants of the run", **style.THEORY),
        style.entry("Basu et al.: its bound", **style.PAPER),
        style.BAND,
    ]
    style.legend(figure, entries, columns=2)
    return figure
