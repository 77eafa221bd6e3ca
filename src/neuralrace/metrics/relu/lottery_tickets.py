"""Lottery tickets of XoR: small networks of the units that win the race."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from neuralrace.extensions.registry import Metric
from neuralrace.metrics.values import Values, crossing_time, per_run
from neuralrace.results.cells import CellResults
from neuralrace.theory.xor import xor_loss, xor_start

SHARES = (1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32)
"""Shares of the hidden units that are kept, rounded down to whole units, but at least one."""


@Metric(
    requires="layered relu trained_readout one_hidden squared_error xor gradient_flow",
    observables="weights",
    trains=True,
    variables={
        "ticket_loss": ("ticket kept time", "loss of a ticket"),
        "ticket_predicted_loss": ("ticket kept time", "loss of a ticket by theory"),
        "ticket_half_time_over_whole": (
            "ticket kept",
            "time of a ticket to half of the initial loss over that of the whole network",
        ),
        "ticket_predicted_half_time_over_whole": ("ticket kept", "the same by theory"),
        "ticket_half_time_error": (
            "ticket kept",
            "distance of a ticket's time to half of the initial loss from theory, over the latter",
        ),
        "ticket_half_time_error_by_number": (
            "ticket kept",
            "the same if all units had equal parts in the initial strength",
        ),
        "ticket_final_loss": ("ticket kept", "final loss of a ticket over the initial loss"),
        "ticket_lost_examples": ("ticket kept", "share of examples that no kept unit joins"),
        "ticket_winners": ("ticket kept", "share of kept units that are winners as well"),
    },
)
def lottery_tickets(cell: CellResults) -> Values:
    """Training of a part of the hidden units again, from the same initial weights.

    A ticket keeps a share of the units, by one of four rules. `winners` are those with the largest
    part in the initial strength of each example's pathway, each pathway in turn; theory computes it
    from the initial weights. `losers` have the smallest part. `random` units are drawn by the run
    seed. `largest` units have the largest product |v||w| of their weights after training, which is
    how tickets are usually found. Theory of a ticket starts from the kept weights. Its start is
    smaller, and its time therefore longer, by a logarithm. With equal parts of all units, the
    number of kept units alone would set this time.

    The level is half of the initial loss of the whole network. Times are NaN for tickets that never
    reach it. If no kept unit joins an example, theory says that its part of the loss remains.

    Source: derived here, from fig. 3 of Saxe, Sodhani, Lewallen 2022. Tickets are those of Frankle
    and Carbin 2019, "The lottery ticket hypothesis".
    """
    # imported here, so that other metrics do not load JAX
    from neuralrace.theory.tickets import keep, rankings, train_again

    spec, data, time = cell.spec, cell.data, cell.flow_time
    initial, final = ([w[:, :, at] for w in cell.weights()] for at in (0, -1))
    encoder, decoder = initial
    # each unit as a network of its own: (init_scale, seed, unit, example)
    strength = xor_start(encoder[..., None, :], decoder[:, :, 0, :, None], data.x, data.y[:, 0])
    size = np.linalg.norm(final[0], axis=-1) * abs(final[1][:, :, 0])
    orders = rankings(strength, size, spec.seed_numbers)
    ranked = np.stack([*orders.values()], axis=2)  # (init_scale, seed, ticket, unit)
    scales, seeds, tickets, units = ranked.shape
    copies = [np.repeat(layer, tickets, axis=1) for layer in initial]
    losses, starts, winners = [], [], []
    for count in (max(1, int(share * units)) for share in SHARES):
        kept = ranked[..., :count]
        loss = train_again(spec, keep(copies, kept.reshape(scales, seeds * tickets, count)))
        losses.append(loss.reshape(scales, seeds, tickets, -1))
        starts.append(np.take_along_axis(strength[:, :, None], kept[..., None], axis=3).sum(3))
        winners.append((kept[..., None] == kept[:, :, :1, None, :]).any(-1).mean(-1))
    start, whole_start = np.stack(starts, axis=3), strength.sum(2)
    equal_parts = np.multiply.outer(whole_start, SHARES).swapaxes(2, 3)
    first = cell.trajectory["loss"].isel(time=0, drop=True)

    def curve(values: np.ndarray, **labels: Sequence[Any]) -> xr.DataArray:
        return per_run(cell, values, **labels, time=cell.trajectory["time"].values)

    def half_time(curve: xr.DataArray) -> xr.DataArray:
        return crossing_time(-curve, -first / 2, time).transpose("init_scale", "seed", ...)

    labels = {"ticket": [*orders], "kept": SHARES}
    loss = curve(np.stack(losses, axis=3), **labels)
    predicted = curve(xor_loss(time.values, start), **labels)
    half, predicted_half = half_time(loss), half_time(predicted)
    by_number = half_time(curve(xor_loss(time.values, equal_parts), kept=SHARES))
    return {
        "ticket_loss": loss,
        "ticket_predicted_loss": predicted,
        "ticket_half_time_over_whole": half / half_time(cell.trajectory["loss"]),
        "ticket_predicted_half_time_over_whole": predicted_half
        / half_time(curve(xor_loss(time.values, whole_start))),
        "ticket_half_time_error": abs(half / predicted_half - 1),
        "ticket_half_time_error_by_number": abs(half / by_number - 1),
        "ticket_final_loss": loss.isel(time=-1, drop=True) / first,
        "ticket_lost_examples": per_run(cell, (start == 0).mean(-1), **labels),
        "ticket_winners": per_run(cell, np.stack(winners, axis=3), **labels),
    }
