"""The trainer: all runs of a cell in one compiled program.

Runs (init scale x seed) are a `vmap` axis, and observables are recorded inside the loop over
gradient steps. Runs of large networks are trained in groups, one group after the other by the same
program (see `neuralrace.training.groups`).

Compiling takes seconds, so numbers in which cells often differ are arguments of the program: data,
learning rate, steps between records, records in a call. Cells that differ in these alone share it,
and it makes the first record and all others. A call ends where a progress line, a checkpoint or a
snapshot is due, or after `ROWS` records.
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
from neuralrace.extensions.representation import short_repr
from neuralrace.training import memory
from neuralrace.training.blocks import mean_over_blocks
from neuralrace.training.checkpointing import Checkpoints, State
from neuralrace.training.environment import COMPILE_EVENT, refuse_forked_jax
from neuralrace.training.groups import groups
from neuralrace.training.observables.view import View
from neuralrace.training.progress import Progress
from neuralrace.training.runs import Runs
from neuralrace.training.task import Axes, Task

Observe = Callable[[View], Mapping[str, Array]]

DIVERGENCE_FACTOR = 1e6
"""A run has diverged when its loss is not finite or has grown by this factor."""
ROWS, ROW_BYTES = 64, 2**26
"""Most records that one call of the program returns, and the most bytes that they take."""
NUMBER = np.asarray(0)
"""Stands for any number of steps or records where a program is traced."""


@dataclass(frozen=True)
class Trajectory:
    """Recorded variables of all runs of a cell.

    Attributes:
        variables: arrays by schema name, leading axes (init_scale, seed, time or snapshot).
        diverged_at: step at which a run diverged, -1 for runs that did not.
        samples: number of samples that the loss is averaged over.
        trained_width: hidden units that were trained; see `Task.trained_width`.
    """

    variables: dict[str, Float[np.ndarray, "init_scale seed ..."]]
    diverged_at: Int[np.ndarray, "init_scale seed"]
    samples: int
    trained_width: str = Task.trained_width

    __repr__ = short_repr


def train(
    ensemble: Runs,
    report: Callable[[str], None] = lambda line: None,
    checkpoints: Checkpoints | None = None,
) -> Trajectory:
    """Trains all runs of a cell.

    Args:
        ensemble: the runs.
        report: called with a line of progress every few seconds.
        checkpoints: saved state of an interrupted training; nothing is saved when absent.

    Returns:
        The recorded trajectory. A diverged run stops where it diverged and holds NaN from there on;
        other runs are not affected.

    Raises:
        UserError: the initialiser does not fit the network, the dataset has no distribution to draw
            fresh samples from, the runs do not fit into memory, every run diverged, compilation is
            switched off, or this process was forked after JAX had started.
    """
    refuse_forked_jax()
    if jax.config.values["jax_disable_jit"]:
        raise UserError(
            "networks are trained by a compiled program",
            key="JAX_DISABLE_JIT",
            value=1,
            remedy="unset it, or call jax.config.update('jax_disable_jit', False)",
        )
    with (
        jax.enable_x64(ensemble.precision == "float64"),
        jax.default_matmul_precision(ensemble.matmul_precision),
    ):
        trajectory = Trainer(ensemble).train(report, checkpoints)
    if (trajectory.diverged_at >= 0).all():
        first = int(trajectory.diverged_at.min())
        raise UserError(
            f"every run diverged, the first at step {first}",
            key="training.learning_rate",
            value=ensemble.training.learning_rate,
            remedy="use a smaller learning rate",
        )
    return trajectory


class Trainer:
    """All runs of a cell, and the program that trains them.

    Two pytrees go through the program. `members` is what training changes: `params`, `optimiser`
    (its state), `diverged_at` and `order` (of mini-batches). `fixed` is what it does not change:
    `initial` weights, `rest` (weights and axes that are not trained), `per_run` arrays,
    `learning_rate`, loss `factor`, `loss_limit` and data of the random `key`. Every leaf has a
    leading axis of runs, scale by scale. The program trains one group of runs.

    Create and call it inside `jax.enable_x64` and the precision of matrix products of the ensemble,
    as `train` does.

    Attributes:
        ensemble: the runs.
        task: their network on their dataset.
        scales: init scales of the ensemble.
        seeds: seeds of the ensemble.
        graph: structure of the network, without its weights.
        groups: runs that are trained together.
        data: arrays that all runs share, on the device.
    """

    def __init__(self, ensemble: Runs, task: Task | None = None):
        """Loads the data; `start` makes the weights. An absent task is made from the ensemble.

        Raises:
            UserError: a batch is larger than the dataset, or fresh samples are configured for a
                dataset that is a fixed sample.
        """
        self.ensemble = ensemble
        self.scales, self.seeds = ensemble.init_scales, ensemble.seed_numbers
        self.task = task or ensemble.task()
        self.optimiser = ensemble.training.optimiser.transformation()
        entries = [OBSERVABLES[name] for name in ensemble.record.observables]
        # snapshots as frequent as records are records, and need no program and calls of their own
        records = ensemble.training.steps // ensemble.record.every
        apart = [e.declaration.snapshots and ensemble.record.snapshots < records for e in entries]
        self.observables = [e.load() for e, own in zip(entries, apart, strict=True) if not own]
        self.snapshot_observables = [e.load() for e, own in zip(entries, apart, strict=True) if own]
        # A sampler may be a pytree: its numbers are arguments of the program, as other data are, so
        # that datasets which differ in numbers alone share the program.
        sampler = ensemble.training.batch.sampler(ensemble.dataset, self.task.items)
        numbers, self.sampler = jax.tree.flatten(sampler)
        self.data = self._device({**self.task.arrays, "sampler": numbers})
        one = jax.tree.map(lambda w: w[0, 0], self.task.weights(self.scales[:1], self.seeds[:1]))
        self.graph, *_ = nnx.split(self.task.network(self._device(one)), nnx.Param, ...)
        self._one = one
        by_seed = not ensemble.training.batch.whole
        one_run, _ = self._shapes(1)
        run_bytes = memory.size_of(jax.tree.leaves((one_run["params"], one_run["optimiser"])))
        self.groups = groups(len(self.scales), len(self.seeds), run_bytes, by_seed)

    # One run ---------------------------------------------------------------------------------

    def loss(self, params: Any, fixed: Any, batch: Any) -> Array:
        """Loss of one run on a batch."""
        network = nnx.merge(self.graph, params, fixed["rest"])
        return fixed["factor"] * self.task.loss(network, batch, fixed["per_run"])

    def whole_loss(self, params: Any, fixed: Any, data: Any) -> Array:
        """Loss of one run on all samples."""
        if self.task.by_sample:
            return self.over_samples(lambda batch: self.loss(params, fixed, batch), data["loss"])
        network = nnx.merge(self.graph, params, fixed["rest"])
        return fixed["factor"] * self.task.whole_loss(network, data, fixed["per_run"])

    def over_samples(self, mean: Callable[[Any], Any], batch: Any) -> Any:
        """A mean over the samples of a batch, in blocks where activations on all are large."""
        if not (self.task.by_sample and self.ensemble.training.batch.whole):
            return mean(batch)
        units = sum(weight.shape[-2] for weight in jax.tree.leaves(self._one))
        per_sample = units * self.dtype.itemsize * self.groups.size
        return mean_over_blocks(mean, batch, max(memory.at_once() // per_sample, 1))

    def step(self, member: Any, fixed: Any, batch: Any, step: Array) -> Any:
        """One gradient step of one run; a run that has diverged keeps its weights."""
        params, state = member["params"], member["optimiser"]
        loss, gradient = self.over_samples(
            lambda batch: jax.value_and_grad(self.loss)(params, fixed, batch), batch
        )
        updates, new_state = self.optimiser.update(gradient, state, params)
        updates = jax.tree.map(
            partial(_at_rate, fixed["learning_rate"]),
            updates,
            is_leaf=lambda node: isinstance(node, nnx.Variable),
        )
        # `<=` is false for a loss of NaN too
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
            slopes = jax.grad(self.whole_loss)(params, fixed, data)
            axes, frozen = nnx.split_state(rest, Axes, ...)
            return nnx.merge(self.graph, slopes, axes, jax.tree.map(jnp.zeros_like, frozen))

        view = View(
            training=self.ensemble.training,
            task=self.task,
            network=nnx.merge(self.graph, params, rest),
            initial=nnx.merge(self.graph, fixed["initial"], rest),
            data=data,
            per_run=fixed["per_run"],
            gradient=gradient,
        )
        record = {"loss": loss}
        for observable in observables:
            record.update(observable(view))
        healthy = (member["diverged_at"] < 0) & (loss <= fixed["loss_limit"])
        return {name: jnp.where(healthy, value, jnp.nan) for name, value in record.items()}

    # All runs --------------------------------------------------------------------------------

    def start(self) -> tuple[Any, Any]:
        """`members` and `fixed` of all runs before training.

        Raises:
            UserError: the initialiser does not fit the network.
        """
        weights, per_run = self.task.weights(self.scales, self.seeds), self.task.per_run(self.seeds)
        flat = jax.tree.map(lambda w: w.reshape(-1, *w.shape[2:]), weights)
        copies = len(self.scales)
        per_run = jax.tree.map(lambda a: np.tile(a, (copies, *[1] * (a.ndim - 1))), per_run)
        weights, per_run = map(self._device, (flat, per_run))
        return self._start(weights, per_run, jax.device_put(np.tile(self.seeds, copies)))

    def _start(self, weights: Any, per_run: Any, seeds: Array) -> tuple[Any, Any]:
        training, runs = self.ensemble.training, len(seeds)

        def parts(one: Any) -> tuple[Any, Any]:
            _, params, rest = nnx.split(self.task.network(one), nnx.Param, ...)
            return params, rest

        # not jitted: compiling would take longer than these few operations
        params, rest = jax.vmap(parts)(weights)
        constants = {
            "learning_rate": training.learning_rate,
            "factor": training.loss.factor(self.task.samples),
            "loss_limit": np.inf,  # until the first loss is known
        }
        fixed = {
            "rest": rest,
            "per_run": per_run,
            # a copy: the program overwrites the donated buffers of `params`
            "initial": jax.device_put(params, may_alias=False),
            **{name: self._device(np.full(runs, value)) for name, value in constants.items()},
        }
        members = {
            "params": params,
            "optimiser": jax.vmap(self.optimiser.init)(params),
            "diverged_at": jax.device_put(np.full(runs, -1)),
            "order": jax.tree.map(
                lambda order: jax.device_put(np.tile(order, (runs, 1))),
                training.batch.order(self.task.items),
            ),
        }
        if not training.batch.whole:
            stream = stable_hash("batches")

            def key_data(seed: Array) -> Array:
                return jax.random.key_data(jax.random.fold_in(jax.random.key(seed), stream))

            fixed["key"] = jax.jit(jax.vmap(key_data))(seeds)
        return members, fixed

    @cached_property
    def shapes(self) -> tuple[Any, Any]:
        """Shapes of `members` and `fixed` of a group."""
        return self._shapes(self.groups.size)

    def _shapes(self, runs: int) -> tuple[Any, Any]:
        """Shapes of that many runs: memory is checked before `start` allocates it."""
        return jax.tree.map(lambda one: one.update(shape=(runs, *one.shape[1:])), self._one_run)

    @cached_property
    def _one_run(self) -> tuple[Any, Any]:
        """Shapes of `members` and `fixed` of one run."""

        def with_axis(one: np.ndarray) -> jax.ShapeDtypeStruct:
            return jax.ShapeDtypeStruct((1, *one.shape), self._dtype(one))

        per_run = {name: each[0] for name, each in self.task.per_run(self.seeds[:1]).items()}
        arguments = jax.tree.map(with_axis, (self._one, per_run, np.asarray(self.seeds[0])))
        return jax.eval_shape(self._start, *arguments)

    def advance(
        self, members: Any, fixed: Any, data: Any, first: Array, every: Array, records: Array
    ) -> tuple[Any, dict[str, Array]]:
        """Trains a group for some steps and records observables; this is what is compiled.

        Args:
            members: see `Trainer`.
            fixed: see `Trainer`.
            data: `self.data`.
            first: number of the next step.
            every: steps before each record. With 0, the present state is recorded.
            records: number of records, at most `self.rows`. With 0, `every` steps are made and
                nothing is recorded, as for a call that ends before the next record is due.

        Returns:
            `members` after these steps, and the records, (rows, run, ...), of which the first
            `records` rows are meaningful.
        """

        def one_step(step: Array, members: Any) -> Any:
            members, batch = self.batch(members, fixed, data, step)
            axis = None if self.ensemble.training.batch.whole else 0
            return jax.vmap(self.step, (0, 0, axis, None))(members, fixed, batch, step)

        def one_record(row: Array, state: tuple[Any, Array, Any]) -> tuple[Any, Array, Any]:
            members, first, series = state
            # `fori_loop` and not `scan`: its bounds are arguments, so that one program serves any
            # number of steps, and it stacks no outputs
            members = jax.lax.fori_loop(first, first + every, one_step, members)

            def with_record() -> dict[str, Array]:
                record = self._observed(members, fixed, data, first + every)
                return {name: series[name].at[row].set(value) for name, value in record.items()}

            series = jax.lax.cond(records > 0, with_record, lambda: series)
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
        return jax.eval_shape(self._observed, *self.shapes, self.data, NUMBER)

    @cached_property
    def _observed(self) -> Callable[..., dict[str, Array]]:
        """`observe_all` of a record; one jitted function, so that it is traced once.

        It is inlined, as a call would use all its arguments, the initial weights too.
        """
        return jax.jit(partial(self.observe_all, self.observables), inline=True)

    @property
    def rows(self) -> int:
        """Most records of one call of `advance`: a function of shapes alone, as the program is."""
        return min(max(ROW_BYTES // memory.size_of([*self._record.values()]), 1), ROWS)

    def observe_all(
        self, observables: Sequence[Observe], members: Any, fixed: Any, data: Any, step: Array
    ) -> dict[str, Array]:
        """Loss and observables of every run of a group; `step` is the number of the next one."""
        data = self.task.present(data, step)
        return jax.vmap(lambda member, fixed: self.observe(observables, member, fixed, data))(
            members, fixed
        )

    def batch(self, members: Any, fixed: Any, data: Any, step: Array) -> tuple[Any, Any]:
        """`members` with their new order, and the samples of a step.

        A full batch is shared by all runs; otherwise every run has its own batch.
        """
        batch, copies = self.ensemble.training.batch, len(self.scales)
        data = self.task.present(data, step)
        if batch.whole:
            return members, data["loss"]
        seeds = len(fixed["key"]) // copies
        sampler = jax.tree.unflatten(self.sampler, data["sampler"])

        def sample(key: Array, size: int) -> Any:
            return jax.tree.map(lambda array: array.astype(self.dtype), sampler(key, size))

        def draw(order: Any, key: Array) -> tuple[Any, Any]:
            return batch.draw(order, key, step, partial(self.task.batch, data), sample)

        orders = jax.tree.map(lambda order: order[:seeds], members["order"])
        drawn = jax.vmap(draw)(orders, jax.random.wrap_key_data(fixed["key"][:seeds]))
        # runs are ordered scale by scale; those of one seed share samples, which are drawn once
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
        advance = compiled(self.advance, *self.shapes, self.data, *[NUMBER] * 3, donate=True)
        runs = self.groups.runs.size
        waiting = (runs - self.groups.size) * memory.size_of(jax.tree.leaves(self._shapes(1)))
        needed = memory.program_memory(advance, runs, waiting)
        if needed.total > memory.WORTH_A_LINE:
            report(memory.describe(needed, available))
        memory.refuse_program(needed, available)
        size = (1 + steps // record.every) * memory.size_of([*self._record.values()])
        snapshot = None
        if self.snapshot_observables:
            observe = partial(self.observe_all, self.snapshot_observables)
            snapshot = compiled(observe, *self.shapes, self.data, NUMBER, often=False)
            size += (1 + record.snapshots) * memory.size_of(jax.tree.leaves(snapshot.out_info))
        memory.refuse_records(size * len(self.groups.runs), memory.available_memory())
        members, fixed = map(self.groups.divide, self.start())

        def run(members: list[Any], first: int, every: int, records: int) -> tuple[Any, Any]:
            numbers = [np.asarray(n) for n in (first, every, records)]
            called = [
                advance(*group, self.data, *numbers) for group in zip(members, fixed, strict=True)
            ]
            members, series = map(list, zip(*called, strict=True))
            rows = self.groups.join(series, axis=1)
            return members, {name: values[:records] for name, values in rows.items()}

        def snapshots_of(members: list[Any], step: int) -> list[dict[str, np.ndarray]]:
            if snapshot is None:
                return []
            values = [
                snapshot(*group, self.data, np.asarray(step))
                for group in zip(members, fixed, strict=True)
            ]
            return [{name: each[None] for name, each in self.groups.join(values).items()}]

        state = checkpoints.restore(self._shapes(runs)[0], report) if checkpoints else None
        if state is None:
            members, series = run(members, 0, 0, 1)
            done, series, snapshots = 0, [series], snapshots_of(members, 0)
        else:
            done, series, snapshots = state.step, state.series, state.snapshots
            members = self.groups.divide(state.members)
        limits = self._device(DIVERGENCE_FACTOR * series[0]["loss"][0])
        for group, limit in zip(fixed, self.groups.divide(limits), strict=True):
            group["loss_limit"] = limit
        # steps between snapshots, and steps until the next progress line
        interval, pace = steps // record.snapshots if snapshot else steps, 1
        progress = Progress(done, steps, report)
        while done < steps:
            left = record.every - done % record.every  # steps to the next record
            every = min(pace, left)
            if every < record.every:
                records = int(every == left)
            else:
                # a multiple of `every`: `Record` requires that records divide snapshots
                before_snapshot = (interval - done % interval) // every
                records = min(pace // every, self.rows, before_snapshot)
            members, rows = run(members, done, every, records)
            series += [rows] * bool(records)
            made = max(records, 1) * every
            done += made
            if done % interval == 0:
                snapshots += snapshots_of(members, done)
            pace = progress.update(done, series[-1]["loss"][-1], made)
            if checkpoints and done < steps and checkpoints.due():
                checkpoints.save(State(done, self.groups.join(members), series, snapshots))
        variables = (_stack(snapshots, shape) if snapshots else {}) | _stack(series, shape)
        diverged_at = self.groups.join([group["diverged_at"] for group in members]).reshape(shape)
        # a step checks the loss before it, so that none notices a divergence in the last one
        late = (diverged_at < 0) & np.isnan(variables["loss"][..., -1])
        return Trajectory(
            variables=variables,
            diverged_at=np.where(late, steps, diverged_at),
            samples=self.task.samples,
            trained_width=self.task.trained_width,
        )

    @property
    def dtype(self) -> Any:
        """Floating-point type of weights and records."""
        return jnp.dtype(self.ensemble.precision)

    def _device(self, tree: Any) -> Any:
        """Arrays on the device; numbers that are no integers get the precision of training."""
        # `jnp.asarray` would compile a program for each shape
        return jax.device_put(jax.tree.map(lambda a: np.asarray(a, self._dtype(a)), tree))

    def _dtype(self, value: np.ndarray) -> Any:
        integer = np.issubdtype(value.dtype, np.integer)
        return jax.dtypes.canonicalize_dtype(value.dtype) if integer else self.dtype


def _at_rate(learning_rate: Array, update: nnx.Variable) -> nnx.Variable:
    """An update times the learning rate, and times the `rate` of a parameter that has its own."""
    rate = update.get_metadata().get("rate", 1.0)
    step = learning_rate * update[...]
    return update.replace(step if rate == 1 else rate * step)


_PROGRAMS: dict[Any, Compiled] = {}


def compiled(
    function: Callable[..., Any], *shapes: Any, donate: bool = False, often: bool = True
) -> Compiled:
    """The compiled program of a function; the same program again if an equal one was compiled.

    The core-seconds that this takes are reported to JAX's monitoring as `COMPILE_EVENT`.

    Args:
        function: function to compile.
        shapes: its arguments, or their shapes.
        donate: whether the program may overwrite its first argument: without it, weights and
            optimiser state would exist twice during every call.
        often: whether it is called so often that the compiler should spend time on fast code.
    """
    begin = time.process_time()
    lowered = jax.jit(function, donate_argnums=0 if donate else ()).lower(*shapes)
    # the text alone is no unique key, as it omits unused arguments
    signature = tuple((each.shape, str(each.dtype)) for each in jax.tree.leaves(shapes))
    key = lowered.as_text(), lowered.in_tree, lowered.out_tree, signature, often
    if key not in _PROGRAMS:
        options: dict[str, str | bool] = {} if often else {"xla_backend_optimization_level": "0"}
        _PROGRAMS[key] = lowered.compile(compiler_options=options)
    jax.monitoring.record_event_duration_secs(COMPILE_EVENT, time.process_time() - begin)
    return _PROGRAMS[key]


def _stack(parts: list[dict[str, np.ndarray]], shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Parts joined along time; (time, run, ...) becomes (init_scale, seed, time, ...)."""
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {
        name: np.moveaxis(value, 0, 1).reshape(*shape, len(value), *value.shape[2:])
        for name, value in joined.items()
    }
