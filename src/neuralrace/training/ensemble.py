"""The training engine: all runs of a cell in one compiled program.

Runs (init scale x seed) are a `vmap` axis, gradient steps a `lax.scan`, and observables are
recorded inside the scan. The host calls the compiled program some twenty times, or every few
seconds where that is more often, to collect records, to report progress and to keep checkpoints.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax import Array
from jaxtyping import Float, Int

from neuralrace.base import stable_hash
from neuralrace.errors import UserError
from neuralrace.observables._view import View
from neuralrace.registry import OBSERVABLES
from neuralrace.spec import FreshBatch, FullBatch, MiniBatch, Run
from neuralrace.training import memory
from neuralrace.training.checkpoints import Checkpoints, State
from neuralrace.training.progress import Progress
from neuralrace.training.tasks import task_of

# A run counts as diverged when its loss is not finite or has grown by this factor.
DIVERGENCE_FACTOR = 1e6
# Calls of the compiled program in a run, at least: between them progress can be reported.
CALLS = 20


@dataclass(frozen=True)
class Trajectory:
    """What training recorded.

    Attributes:
        variables: arrays by schema name, leading axes (init_scale, seed, time or snapshot).
        diverged_at: step at which a run diverged, -1 for runs that did not.
        samples: size of the dataset.
    """

    variables: dict[str, Float[np.ndarray, "init_scale seed ..."]]
    diverged_at: Int[np.ndarray, "init_scale seed"]
    samples: int


def train(
    run: Run,
    scales: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
    report: Callable[[str], None] = lambda line: None,
    checkpoints: Checkpoints | None = None,
) -> Trajectory:
    """Trains all runs of a cell, or a part of them.

    Args:
        run: what to train.
        scales: indices into `run.init_scales`; all when absent.
        seeds: seeds to train; all when absent.
        report: takes a line of progress every few seconds.
        checkpoints: where an interrupted training goes on from; none are kept when absent.

    Returns:
        The recorded trajectory. A diverged run stops where it diverged, holds NaN from there on,
        and leaves the other runs untouched.

    Raises:
        UserError: the law does not fit the network, the dataset has no law to draw fresh samples
            from, the runs do not fit into memory, or every run diverged.
    """
    chosen_scales = run.init_scales if scales is None else [run.init_scales[i] for i in scales]
    chosen_seeds = run.seed_numbers if seeds is None else seeds
    with (
        jax.enable_x64(run.precision == "float64"),
        jax.default_matmul_precision(run.matmul_precision),
    ):
        trajectory = _Engine(run).train(chosen_scales, chosen_seeds, report, checkpoints)
    if (trajectory.diverged_at >= 0).all():
        first = int(trajectory.diverged_at.min())
        raise UserError(
            f"training.learning_rate: {run.training.learning_rate!r}: every run diverged, the "
            f"first at step {first}; use a smaller learning rate"
        )
    return trajectory


class _Engine:
    """The compiled program of one cell and the arrays that it closes over."""

    def __init__(self, run: Run):
        self.run = run
        self.task = task_of(run)
        self.dtype = jnp.dtype(run.precision)
        self.factor = run.training.loss.factor(self.task.samples)
        # the learning rate is an argument of the compiled program, so that a sweep shares it
        self.optimiser = run.training.optimiser.transformation()
        chosen = [OBSERVABLES[name] for name in run.record.observables]
        self.recorded = [each.load() for each in chosen if not each.declaration.snapshots]
        self.snapped = [each.load() for each in chosen if each.declaration.snapshots]
        batch = run.training.batch
        if isinstance(batch, MiniBatch) and batch.size > self.task.shown:
            raise UserError(
                f"training.batch.size: {batch.size}: the dataset has {self.task.shown} samples; "
                "use at most that"
            )
        self.sampler = run.dataset.sampler() if isinstance(batch, FreshBatch) else None
        if isinstance(batch, FreshBatch) and self.sampler is None:
            raise UserError(
                f"training.batch.name: 'fresh': dataset {type(run.dataset).__name__} is a fixed "
                "sample; use full or mini"
            )

    # One network -----------------------------------------------------------------------------

    def loss(self, params: Any, fixed: Any, batch: Any) -> Array:
        network = nnx.merge(self.graph, params, fixed["rest"])
        return self.factor * self.task.loss(network, batch, fixed["own"])

    def whole_loss(self, params: Any, fixed: Any, data: Any) -> Array:
        network = nnx.merge(self.graph, params, fixed["rest"])
        return self.factor * self.task.whole_loss(network, data, fixed["own"])

    def step(self, member: Any, fixed: Any, batch: Any, step: Array) -> Any:
        """One gradient step of one run; a run whose loss has left all bounds stays where it is."""
        params, state = member["params"], member["optimiser"]
        loss, gradient = jax.value_and_grad(self.loss)(params, fixed, batch)
        updates, new_state = self.optimiser.update(gradient, state, params)
        updates = jax.tree.map(lambda update: fixed["learning_rate"] * update, updates)
        healthy = (member["diverged_at"] < 0) & (loss <= fixed["loss_limit"])
        params, state = jax.tree.map(
            lambda new, old: jnp.where(healthy, new, old),
            (optax.apply_updates(params, updates), new_state),
            (params, state),
        )
        newly = (member["diverged_at"] < 0) & ~healthy
        diverged_at = jnp.where(newly, step, member["diverged_at"])
        return {**member, "params": params, "optimiser": state, "diverged_at": diverged_at}

    def observe(self, chosen: list[Any], member: Any, fixed: Any, data: Any) -> dict[str, Array]:
        """Loss and observables of one run; NaN once it has diverged."""
        params, rest = member["params"], fixed["rest"]
        loss = self.whole_loss(params, fixed, data)

        def gradient() -> Any:
            slope = jax.grad(self.whole_loss)(params, fixed, data)
            return nnx.merge(self.graph, slope, jax.tree.map(jnp.zeros_like, rest))

        view = View(
            run=self.run,
            task=self.task,
            network=nnx.merge(self.graph, params, rest),
            initial=nnx.merge(self.graph, fixed["initial"], rest),
            data=data,
            own=fixed["own"],
            gradient=gradient,
        )
        seen = {"loss": loss}
        for observable in chosen:
            seen.update(observable(view))
        healthy = (member["diverged_at"] < 0) & (loss <= fixed["loss_limit"])
        return {name: jnp.where(healthy, value, jnp.nan) for name, value in seen.items()}

    # All runs --------------------------------------------------------------------------------

    def start(self, seed: Array, own: Any, weights: Any) -> tuple[Any, Any]:
        """What changes in training and what stays fixed, of one run."""
        _, params, rest = nnx.split(self.task.network(weights), nnx.Param, ...)
        fixed = {
            "rest": rest,
            "own": own,
            "initial": params,
            "learning_rate": jnp.asarray(self.run.training.learning_rate, self.dtype),
            "key": jax.random.fold_in(jax.random.key(seed), stable_hash("batches")),
            "loss_limit": jnp.asarray(jnp.inf, self.dtype),  # until the first loss is known
        }
        member = {
            "params": params,
            "optimiser": self.optimiser.init(params),
            "diverged_at": jnp.asarray(-1, int),
        }
        if isinstance(self.run.training.batch, MiniBatch):
            member["order"] = jnp.arange(self.task.shown)
        return member, fixed

    def outline(self, scales: Sequence[float], seeds: Sequence[int]) -> tuple[Any, Any]:
        """What all runs share, on the device, and the shapes of what `members` will make of them.

        Only one run's weights are drawn, so that memory can be planned before it is taken.
        """
        data, runs, self.seeds = self.device(self.task.arrays), len(scales) * len(seeds), len(seeds)
        one = jax.tree.map(lambda w: w[0, 0], self.task.weights(scales[:1], seeds[:1]))
        self.graph, *_ = nnx.split(self.task.network(self.device(one)), nnx.Param, ...)

        def of_all(one: np.ndarray) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct((runs, *one.shape), self.kind(one))

        own = {name: each[0] for name, each in self.task.own(seeds[:1]).items()}
        shapes = jax.eval_shape(
            jax.vmap(self.start),
            jax.ShapeDtypeStruct((runs,), jnp.asarray(seeds).dtype),
            jax.tree.map(of_all, own),
            jax.tree.map(of_all, one),
        )
        return data, shapes

    def members(self, scales: Sequence[float], seeds: Sequence[int]) -> tuple[Any, Any]:
        """What changes in training and what stays fixed, of every run, flattened to one axis."""
        weights, own = self.task.weights(scales, seeds), self.task.own(seeds)
        flat = self.device(jax.tree.map(lambda w: w.reshape(-1, *w.shape[2:]), weights))
        repeated = {
            name: np.tile(each, (len(scales), *[1] * (each.ndim - 1))) for name, each in own.items()
        }
        numbers = jnp.tile(jnp.asarray(seeds), len(scales))
        start = jax.jit(jax.vmap(self.start))
        return start(numbers, self.device(repeated), flat)

    def device(self, tree: Any) -> Any:
        """Arrays on the device, in the precision of the run; integers stay what they are."""
        return jax.tree.map(lambda value: jnp.asarray(value, self.kind(value)), tree)

    def kind(self, value: np.ndarray) -> Any:
        """Type of an array on the device."""
        whole = np.issubdtype(value.dtype, np.integer)
        return jax.dtypes.canonicalize_dtype(value.dtype) if whole else self.dtype

    def advance(
        self, records: int, members: Any, fixed: Any, data: Any, start: Array
    ) -> tuple[Any, Any]:
        """Some records' worth of steps of all runs, from step `start`."""
        every = self.run.record.every

        def one_step(step: Array, members: Any) -> Any:
            members, batch = self.batch(members, fixed, data, step)
            axis = None if isinstance(self.run.training.batch, FullBatch) else 0
            return jax.vmap(self.step, (0, 0, axis, None))(members, fixed, batch, step)

        def one_record(state: tuple[Any, Array], _: None) -> tuple[Any, Any]:
            members, first = state
            members = jax.lax.fori_loop(
                0, every, lambda number, now: one_step(first + number, now), members
            )
            return (members, first + every), self.observe_all(self.recorded, members, fixed, data)

        # steps are counted in the loops and not scanned over: XLA then runs them twice as fast
        (members, _), series = jax.lax.scan(one_record, (members, start), length=records)
        return members, series

    def observe_all(
        self, chosen: list[Any], members: Any, fixed: Any, data: Any
    ) -> dict[str, Array]:
        return jax.vmap(lambda member, its: self.observe(chosen, member, its, data))(members, fixed)

    def batch(self, members: Any, fixed: Any, data: Any, step: Array) -> tuple[Any, Any]:
        """The samples of one step: shared by all runs (full batch) or one batch a run."""
        kind = self.run.training.batch
        if isinstance(kind, MiniBatch):
            per_epoch = self.task.shown // kind.size
            shuffle = jax.vmap(
                lambda key: jax.random.permutation(
                    jax.random.fold_in(key, step // per_epoch), self.task.shown
                )
            )
            # `step` is no batch axis, so this stays a branch: one shuffle an epoch, not one a step
            order = jax.lax.cond(
                step % per_epoch == 0,
                lambda: shuffle(fixed["key"]),
                lambda: members["order"],
            )
            first = (step % per_epoch) * kind.size
            chosen = jax.lax.dynamic_slice_in_dim(order, first, kind.size, axis=1)
            members = {**members, "order": order}
            drawn = jax.vmap(partial(self.task.batch, data))(chosen[: self.seeds])
        elif isinstance(kind, FreshBatch):
            sample = cast(Callable[[Array, int], tuple[Array, Array]], self.sampler)
            drawn = jax.vmap(lambda key: sample(jax.random.fold_in(key, step), kind.size))(
                fixed["key"][: self.seeds]
            )
            drawn = jax.tree.map(lambda array: array.astype(self.dtype), drawn)
        else:
            return members, data["loss"]
        # runs come scale by scale, and those of one seed share their samples
        copies = len(fixed["key"]) // self.seeds
        return members, jax.tree.map(
            lambda array: jnp.tile(array, (copies, *[1] * (array.ndim - 1))), drawn
        )

    def compiled(self, records: int, shapes: tuple[Any, Any], data: Any) -> Any:
        """The program that advances all runs by some records."""
        advance = jax.jit(partial(self.advance, records), donate_argnums=0)
        return advance.lower(*shapes, data, jnp.asarray(0, int)).compile()

    def train(
        self,
        scales: Sequence[float],
        seeds: Sequence[int],
        report: Callable[[str], None],
        checkpoints: Checkpoints | None,
    ) -> Trajectory:
        record, steps, runs = self.run.record, self.run.training.steps, len(scales) * len(seeds)
        available = memory.available(jax.devices()[0])
        data, shapes = self.outline(scales, seeds)
        state = checkpoints.restore(shapes[0], report) if checkpoints else None
        done = state.step if state else 0
        interval = steps // record.snapshots
        records = _divisor(
            math.gcd(interval // record.every, done // record.every),
            steps // record.every // CALLS,
        )
        advance = self.compiled(records, shapes, data)
        plan = memory.plan(advance, runs)
        report(memory.tell(plan, available))
        memory.refuse_if_too_large(plan, available, "memory")
        members, fixed = self.members(scales, seeds)
        recorded = jax.jit(partial(self.observe_all, self.recorded))
        snapped = jax.jit(partial(self.observe_all, self.snapped)) if self.snapped else None
        if state:
            members, seen, snaps = state.members, state.series, state.snapshots
        else:
            seen = [_host(recorded(members, fixed, data), lead=True)]
            snaps = [_host(snapped(members, fixed, data), lead=True)] if snapped else []
        fixed["loss_limit"] = self.device(DIVERGENCE_FACTOR * seen[0]["loss"][0])
        progress = Progress(done, steps, report)
        while done < steps:
            members, series = advance(members, fixed, data, jnp.asarray(done, int))
            seen.append(_host(series))
            done += records * record.every
            if snapped and done % interval == 0:
                snaps.append(_host(snapped(members, fixed, data), lead=True))
            calls = progress.tell(done, seen[-1]["loss"][-1])
            if checkpoints and done < steps and checkpoints.due():
                checkpoints.save(State(done, members, seen, snaps))
            if calls > 1 and records > 1:
                records = _divisor(records, records // calls)
                advance = self.compiled(records, shapes, data)
        shape = len(scales), len(seeds)
        variables = (_stack(snaps, shape) if snaps else {}) | _stack(seen, shape)
        diverged_at = np.asarray(members["diverged_at"]).reshape(shape)
        # a run that leaves all bounds in the last step has no further step to notice it in
        late = (diverged_at < 0) & np.isnan(variables["loss"][..., -1])
        return Trajectory(
            variables=variables,
            diverged_at=np.where(late, steps, diverged_at),
            samples=self.task.samples,
        )


def _divisor(whole: int, most: int) -> int:
    """The largest divisor of a number that is at most `most`, and at least 1."""
    return max(n for n in range(1, min(whole, max(most, 1)) + 1) if whole % n == 0)


def _host(tree: dict[str, Array], lead: bool = False) -> dict[str, np.ndarray]:
    """Arrays on the host, (time, run, ...); `lead` adds the time axis of a single observation."""
    return {
        name: np.asarray(value)[None] if lead else np.asarray(value) for name, value in tree.items()
    }


def _stack(parts: list[dict[str, np.ndarray]], shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Parts joined along time; (time, run, ...) becomes (init_scale, seed, time, ...)."""
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {
        name: np.moveaxis(value, 0, 1).reshape(*shape, len(value), *value.shape[2:])
        for name, value in joined.items()
    }
