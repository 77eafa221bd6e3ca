"""The training engine: all runs of a cell in one compiled program.

Runs (init scale x seed) are a `vmap` axis, and observables are recorded inside the loop over
gradient steps. Steps between records, records in a call and everything that a person tunes are
arguments: one program makes the first record and all others, calls are as long as progress and
checkpoints want them, and cells of one shape share it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax import Array
from jax.stages import Compiled
from jaxtyping import Float, Int

from neuralrace.datasets.random_streams import stable_hash
from neuralrace.errors import UserError
from neuralrace.extensions.registry import OBSERVABLES
from neuralrace.training import memory
from neuralrace.training.checkpointing import Checkpoints, State
from neuralrace.training.environment import COMPILE_EVENT
from neuralrace.training.observables.view import View
from neuralrace.training.progress import Progress
from neuralrace.training.runs import Runs
from neuralrace.training.task import Task

Observe = Callable[[View], Mapping[str, Array]]

# A run counts as diverged when its loss is not finite or has grown by this factor.
DIVERGENCE_FACTOR = 1e6
# Records that a call makes at most, and the bytes that they take at most.
ROWS, ROW_BYTES = 64, 2**26


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
    ensemble: Runs,
    report: Callable[[str], None] = lambda line: None,
    checkpoints: Checkpoints | None = None,
) -> Trajectory:
    """Trains all runs of a cell.

    Args:
        ensemble: what to train.
        report: takes a line of progress every few seconds.
        checkpoints: where an interrupted training goes on from; none are kept when absent.

    Returns:
        The recorded trajectory. A diverged run stops where it diverged, holds NaN from there on,
        and leaves the other runs untouched.

    Raises:
        UserError: the law does not fit the network, the dataset has no distribution to draw fresh
            samples from, the runs do not fit into memory, every run diverged, or compilation is
            switched off.
    """
    if jax.config.values["jax_disable_jit"]:
        raise UserError(
            "JAX_DISABLE_JIT: 1: networks are trained by a compiled program; unset it, or call "
            "jax.config.update('jax_disable_jit', False)"
        )
    with (
        jax.enable_x64(ensemble.precision == "float64"),
        jax.default_matmul_precision(ensemble.matmul_precision),
    ):
        trajectory = Trainer(ensemble).train(report, checkpoints)
    if (trajectory.diverged_at >= 0).all():
        first = int(trajectory.diverged_at.min())
        raise UserError(
            f"training.learning_rate: {ensemble.training.learning_rate!r}: every run diverged, the "
            f"first at step {first}; use a smaller learning rate"
        )
    return trajectory


class Trainer:
    """All runs of a cell, and the program that trains them.

    Make it and call it at the precision of the ensemble; see `train`.

    Attributes:
        ensemble: what is trained.
        task: how it is trained.
        scales: init scales of the ensemble.
        seeds: seeds of the ensemble.
        graph: structure of the network, without its weights.
        data: what all runs share, on the device.
    """

    def __init__(self, ensemble: Runs, task: Task | None = None):
        """Loads the data; weights of all runs are only made by `start`.

        Args:
            ensemble: what to train.
            task: how to train; made from the ensemble when absent.

        Raises:
            UserError: a batch larger than the dataset, or fresh samples of one that is fixed.
        """
        self.ensemble = ensemble
        self.scales, self.seeds = ensemble.init_scales, ensemble.seed_numbers
        self.task = task or ensemble.task()
        self.optimiser = ensemble.training.optimiser.transformation()
        chosen = [OBSERVABLES[name] for name in ensemble.record.observables]
        self.recorded = [each.load() for each in chosen if not each.declaration.snapshots]
        self.large = [each.load() for each in chosen if each.declaration.snapshots]
        sampler = ensemble.training.batch.sampler(ensemble.dataset, self.task.items)
        numbers, self.sampler = jax.tree.flatten(sampler)
        self.data = self._device({**self.task.arrays, "sampler": numbers})
        one = jax.tree.map(lambda w: w[0, 0], self.task.weights(self.scales[:1], self.seeds[:1]))
        self.graph, *_ = nnx.split(self.task.network(self._device(one)), nnx.Param, ...)
        self._one = one

    # One network -----------------------------------------------------------------------------

    def loss(self, params: Any, fixed: Any, batch: Any) -> Array:
        """Loss of one run on a batch."""
        network = nnx.merge(self.graph, params, fixed["rest"])
        return fixed["factor"] * self.task.loss(network, batch, fixed["own"])

    def whole_loss(self, params: Any, fixed: Any, data: Any) -> Array:
        """Loss of one run on all samples."""
        network = nnx.merge(self.graph, params, fixed["rest"])
        return fixed["factor"] * self.task.whole_loss(network, data, fixed["own"])

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

    def observe(
        self, observables: Sequence[Observe], member: Any, fixed: Any, data: Any
    ) -> dict[str, Array]:
        """Loss and observables of one run; NaN once it has diverged."""
        params, rest = member["params"], fixed["rest"]
        loss = self.whole_loss(params, fixed, data)

        def gradient() -> Any:
            slope = jax.grad(self.whole_loss)(params, fixed, data)
            return nnx.merge(self.graph, slope, jax.tree.map(jnp.zeros_like, rest))

        view = View(
            training=self.ensemble.training,
            task=self.task,
            network=nnx.merge(self.graph, params, rest),
            initial=nnx.merge(self.graph, fixed["initial"], rest),
            data=data,
            own=fixed["own"],
            gradient=gradient,
        )
        record = {"loss": loss}
        for observable in observables:
            record.update(observable(view))
        healthy = (member["diverged_at"] < 0) & (loss <= fixed["loss_limit"])
        return {name: jnp.where(healthy, value, jnp.nan) for name, value in record.items()}

    # All runs --------------------------------------------------------------------------------

    def start(self) -> tuple[Any, Any]:
        """What changes in training and what stays fixed, of every run, flattened to one axis.

        Raises:
            UserError: the law does not fit the network.
        """
        weights, own = self.task.weights(self.scales, self.seeds), self.task.own(self.seeds)
        flat = jax.tree.map(lambda w: w.reshape(-1, *w.shape[2:]), weights)
        copies = len(self.scales)
        repeated = {
            name: np.tile(each, (copies, *[1] * (each.ndim - 1))) for name, each in own.items()
        }
        return self._start(flat, repeated, np.tile(self.seeds, copies))

    def _start(self, weights: Any, own: Any, seeds: np.ndarray) -> tuple[Any, Any]:
        training, runs = self.ensemble.training, len(seeds)

        def parts(one: Any) -> tuple[Any, Any]:
            _, params, rest = nnx.split(self.task.network(one), nnx.Param, ...)
            return params, rest

        # not jitted: there is hardly anything to compute
        params, rest = jax.vmap(parts)(self._device(weights))
        initial, _ = jax.vmap(parts)(self._device(weights))  # buffers of its own: params are given
        constants = {
            "learning_rate": training.learning_rate,
            "factor": training.loss.factor(self.task.samples),
            "loss_limit": np.inf,  # until the first loss is known
        }
        fixed = {
            "rest": rest,
            "own": self._device(own),
            "initial": initial,
            **{name: self._device(np.full(runs, value)) for name, value in constants.items()},
        }
        members = {
            "params": params,
            "optimiser": jax.vmap(self.optimiser.init)(params),
            "diverged_at": jnp.asarray(np.full(runs, -1)),
            "order": jax.tree.map(
                lambda order: jnp.asarray(np.tile(order, (runs, 1))),
                training.batch.order(self.task.items),
            ),
        }
        if not training.batch.whole:
            stream = stable_hash("batches")
            key = jax.jit(jax.vmap(lambda seed: jax.random.fold_in(jax.random.key(seed), stream)))
            fixed["key"] = key(jnp.asarray(seeds))
        return members, fixed

    @cached_property
    def shapes(self) -> tuple[Any, Any]:
        """Shapes of what `start` will make: memory is planned before it is taken."""
        runs = len(self.scales) * len(self.seeds)

        def many(one: np.ndarray) -> np.ndarray:
            return np.broadcast_to(one, (runs, *one.shape))

        own = {name: each[0] for name, each in self.task.own(self.seeds[:1]).items()}
        weights, own = jax.tree.map(many, (self._one, own))
        return jax.eval_shape(
            lambda: self._start(weights, own, np.tile(self.seeds, len(self.scales)))
        )

    def advance(
        self, members: Any, fixed: Any, data: Any, first: Array, every: Array, records: Array
    ) -> tuple[Any, dict[str, Array]]:
        """Some records' worth of steps of all runs.

        Args:
            members: what changes, of every run.
            fixed: what does not.
            data: `self.data`.
            first: the next step.
            every: steps before each record; with 0 it tells how things stand.
            records: how many records to make, at most `self.rows`; with 0 only `every` steps are
                made, since even those to the next record may be too many to wait for.

        Returns:
            `members` after these steps, and the records, (rows, run, ...); rows beyond `records`
            mean nothing.
        """

        def one_step(step: Array, members: Any) -> Any:
            members, batch = self.batch(members, fixed, data, step)
            axis = None if self.ensemble.training.batch.whole else 0
            return jax.vmap(self.step, (0, 0, axis, None))(members, fixed, batch, step)

        def one_record(row: Array, state: tuple[Any, Array, Any]) -> tuple[Any, Array, Any]:
            members, first, series = state
            members = jax.lax.fori_loop(first, first + every, one_step, members)
            record = jax.lax.cond(
                records > 0,
                lambda: self.observe_all(self.recorded, members, fixed, data),
                lambda: jax.tree.map(jnp.zeros_like, self._record),
            )
            series = {name: series[name].at[row].set(value) for name, value in record.items()}
            return members, first + every, series

        series = jax.tree.map(
            lambda shape: jnp.zeros((self.rows, *shape.shape), shape.dtype), self._record
        )
        rows = jnp.maximum(records, 1)
        members, _, series = jax.lax.fori_loop(0, rows, one_record, (members, first, series))
        return members, series

    @cached_property
    def _record(self) -> dict[str, jax.ShapeDtypeStruct]:
        """Shapes of one record."""
        return jax.eval_shape(partial(self.observe_all, self.recorded), *self.shapes, self.data)

    @property
    def rows(self) -> int:
        """Records that a call of `advance` has room for: a matter of shapes alone."""
        size = sum(np.prod(each.shape) * each.dtype.itemsize for each in self._record.values())
        return int(min(max(ROW_BYTES // size, 1), ROWS))

    def observe_all(
        self, observables: Sequence[Observe], members: Any, fixed: Any, data: Any
    ) -> dict[str, Array]:
        """Loss and observables of every run."""
        return jax.vmap(lambda member, its: self.observe(observables, member, its, data))(
            members, fixed
        )

    def batch(self, members: Any, fixed: Any, data: Any, step: Array) -> tuple[Any, Any]:
        """The samples of one step: shared by all runs (full batch) or one batch a run."""
        batch, seeds = self.ensemble.training.batch, len(self.seeds)
        if batch.whole:
            return members, data["loss"]
        sampler = jax.tree.unflatten(self.sampler, data["sampler"])

        def sample(key: Array, size: int) -> Any:
            return jax.tree.map(lambda array: array.astype(self.dtype), sampler(key, size))

        def draw(order: Any, key: Array) -> tuple[Any, Any]:
            return batch.draw(order, key, step, partial(self.task.batch, data), sample)

        orders = jax.tree.map(lambda order: order[:seeds], members["order"])
        drawn = jax.vmap(draw)(orders, fixed["key"][:seeds])
        # runs come scale by scale, and those of one seed share their samples
        copies = len(self.scales)
        order, samples = jax.tree.map(
            lambda array: jnp.tile(array, (copies, *[1] * (array.ndim - 1))), drawn
        )
        return {**members, "order": order}, samples

    def train(
        self,
        report: Callable[[str], None] = lambda line: None,
        checkpoints: Checkpoints | None = None,
    ) -> Trajectory:
        """Trains all runs; see `neuralrace.training.trainer.train`."""
        record, steps = self.ensemble.record, self.ensemble.training.steps
        shape = len(self.scales), len(self.seeds)
        available = memory.available_on_device(jax.devices()[0])
        number = jax.ShapeDtypeStruct((), jnp.asarray(0).dtype)
        advance = compiled(self.advance, *self.shapes, self.data, *[number] * 3, donate=True)
        needed = memory.program_memory(advance, len(self.scales) * len(self.seeds))
        report(memory.describe(needed, available))
        memory.refuse_program(needed, available)
        observe = partial(self.observe_all, self.large)
        snapshot = compiled(observe, *self.shapes, self.data) if self.large else None
        kept = (1 + steps // record.every) * memory.size_of([*self._record.values()])
        if snapshot:
            kept += (1 + record.snapshots) * memory.size_of(jax.tree.leaves(snapshot.out_info))
        memory.refuse_records(kept, memory.available_memory())
        members, fixed = self.start()

        def go_on(members: Any, first: int, every: int, records: int) -> tuple[Any, Any]:
            arguments = (jnp.asarray(n) for n in (first, every, records))
            members, series = advance(members, fixed, self.data, *arguments)
            return members, {name: np.asarray(rows)[:records] for name, rows in series.items()}

        def snapshots_of(members: Any) -> list[dict[str, np.ndarray]]:
            values = snapshot(members, fixed, self.data) if snapshot else {}
            return [{name: np.asarray(each)[None] for name, each in values.items()}] * bool(values)

        state = checkpoints.restore(self.shapes[0], report) if checkpoints else None
        if state is None:
            members, series = go_on(members, 0, 0, 1)
            state = State(0, members, [series], snapshots_of(members))
        done, members, series, snapshots = state.step, state.members, state.series, state.snapshots
        fixed["loss_limit"] = self._device(DIVERGENCE_FACTOR * series[0]["loss"][0])
        interval, pace = steps // record.snapshots, 1
        progress = Progress(done, steps, report)
        while done < steps:
            left = record.every - done % record.every  # steps to the next record
            every = min(pace, left)
            if every < record.every:
                records = int(every == left)
            else:
                room = (interval - done % interval) // every
                records = min(pace // every, self.rows, room)
            members, rows = go_on(members, done, every, records)
            series += [rows] * bool(records)
            made = max(records, 1) * every
            done += made
            if done % interval == 0:
                snapshots += snapshots_of(members)
            pace = progress.update(done, series[-1]["loss"][-1], made)
            if checkpoints and done < steps and checkpoints.due():
                checkpoints.save(State(done, members, series, snapshots))
        variables = (_stack(snapshots, shape) if snapshots else {}) | _stack(series, shape)
        diverged_at = np.asarray(members["diverged_at"]).reshape(shape)
        # a run that leaves all bounds in the last step has no further step to notice it in
        late = (diverged_at < 0) & np.isnan(variables["loss"][..., -1])
        return Trajectory(
            variables=variables,
            diverged_at=np.where(late, steps, diverged_at),
            samples=self.task.samples,
        )

    @property
    def dtype(self) -> Any:
        """Type of weights and records."""
        return jnp.dtype(self.ensemble.precision)

    def _device(self, tree: Any) -> Any:
        """Arrays on the device, in its precision; integers stay what they are."""

        def put(value: np.ndarray) -> Array:
            whole = np.issubdtype(value.dtype, np.integer)
            kind = jax.dtypes.canonicalize_dtype(value.dtype) if whole else self.dtype
            return jnp.asarray(value, kind)

        return jax.tree.map(put, tree)


_PROGRAMS: dict[Any, Compiled] = {}


def compiled(function: Callable[..., Any], *shapes: Any, donate: bool = False) -> Compiled:
    """The compiled program of a function; one that was compiled before where the two are alike.

    Args:
        function: what to compile.
        shapes: of its arguments, or arrays.
        donate: whether the first argument is given away.

    JAX's monitoring is told the core-seconds that this took, as `COMPILED`.
    """
    begin = time.process_time()
    lowered = jax.jit(function, donate_argnums=0 if donate else ()).lower(*shapes)
    # the text leaves out arguments that are not used
    taken = tuple((each.shape, str(each.dtype)) for each in jax.tree.leaves(shapes))
    key = lowered.as_text(), lowered.in_tree, lowered.out_tree, taken
    if key not in _PROGRAMS:
        _PROGRAMS[key] = lowered.compile()
    jax.monitoring.record_event_duration_secs(COMPILE_EVENT, time.process_time() - begin)
    return _PROGRAMS[key]


def _stack(parts: list[dict[str, np.ndarray]], shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Parts joined along time; (time, run, ...) becomes (init_scale, seed, time, ...)."""
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {
        name: np.moveaxis(value, 0, 1).reshape(*shape, len(value), *value.shape[2:])
        for name, value in joined.items()
    }
