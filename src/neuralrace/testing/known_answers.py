"""A check of the numerical libraries: `python -m neuralrace.testing.known_answers`.

The answer of every problem is known without a computer: whole numbers that any order of summation
gives exactly, closed forms, and published test vectors. Some releases compute wrong numbers on CPUs
without any error (jax 0.10.2, jax issue 39103; jaxlib before 0.8.2, openxla issue 34260). Such
releases are refused.
"""

import platform
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.random import threefry_2x32
from scipy import integrate, linalg, special

from neuralrace.errors import UserError

STACK = ("jax", "jaxlib", "numpy", "scipy")

# LAPACK and ODE solvers have rounding errors; the errors of a wrong kernel are far larger.
ROUNDING = 1e-10


def _exact(computed: Any, answer: Any) -> bool:
    return np.array_equal(np.asarray(computed), np.asarray(answer))


def _rounded(computed: Any, answer: Any) -> bool:
    return np.allclose(np.asarray(computed), np.asarray(answer), rtol=ROUNDING, atol=ROUNDING)


def products_then_sums() -> bool:
    """|I x|^2 for a batch of x, in both precisions: squares of whole numbers."""

    def squared(matrix: np.ndarray, rows: jax.Array) -> jax.Array:
        return jax.vmap(lambda row: jnp.sum((matrix @ row) ** 2))(rows)

    right = True
    for dtype, count in ((np.float64, 16_385), (np.float32, 32_769)):
        numbers = np.arange(count)
        rows = np.zeros((count, 3), dtype)
        rows[:, 0] = numbers
        # the matrix is a constant of the compiled program, as datasets are
        computed = jax.jit(partial(squared, np.eye(3, dtype=dtype)))(rows)
        right &= _exact(computed, (numbers**2).astype(dtype))
    return right


def writes_into_constants() -> bool:
    """Entries of a constant array after a gather and a scatter: unchanged."""
    columns = np.arange(80, dtype=np.float64).reshape(10, 8)
    places = np.array([1, 3, 5, 7])

    def written(column: jax.Array) -> jax.Array:
        copied = jnp.zeros(10).at[:10].set(column)
        return jnp.zeros(10).at[places].set(copied[places] + 0.5 * jnp.zeros(10)[places])

    every = jax.vmap(written, in_axes=1, out_axes=1)
    computed = jax.jit(lambda: every(jnp.asarray(columns)))()
    answer = np.zeros_like(columns)
    answer[places] = columns[places]
    return _exact(computed, answer)


def descent_in_a_scan() -> bool:
    """A batch of gradient descents that halve the distance to the minimum: powers of two."""
    goals, steps = np.arange(1.0, 1001.0), 40

    def loss(w: jax.Array, goal: jax.Array) -> jax.Array:
        return 0.5 * (goal - w) ** 2

    def run(goal: jax.Array) -> jax.Array:
        def step(w: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
            w = w - 0.5 * jax.grad(loss)(w, goal)
            return w, w

        return jax.lax.scan(step, jnp.zeros(()), None, length=steps)[1]

    computed = jax.jit(jax.vmap(run))(goals)
    return _exact(computed, goals[:, None] * (1 - 0.5 ** np.arange(1, steps + 1)))


def gates_of_units() -> bool:
    """The gradient of summed ReLU units: the sum of the inputs on which each unit is active."""
    x = np.arange(-500.0, 501.0)
    weights = np.array([-2.0, 0.0, 3.0])
    computed = jax.jit(jax.grad(lambda w: jax.nn.relu(x[:, None] * w[None, :]).sum()))(weights)
    total = np.abs(x).sum() / 2
    return _exact(computed, [-total, 0.0, total])


def singular_values() -> bool:
    """Singular values of the matrix of second differences: 2 - 2 cos(k pi / (n + 1))."""
    n = 120
    differences = (
        np.diag(np.full(n, 2.0)) - np.diag(np.ones(n - 1), 1) - np.diag(np.ones(n - 1), -1)
    )
    answer = 2 - 2 * np.cos(np.pi * np.arange(n, 0, -1) / (n + 1))
    batch = np.stack([differences, differences.T])
    compiled = jax.jit(jax.vmap(lambda a: jnp.linalg.svd(a, compute_uv=False)))(batch)
    vectors, values, _ = linalg.svd(differences)
    return (
        _rounded(compiled, np.stack([answer, answer]))
        and _rounded(values, answer)
        and _rounded(np.linalg.eigvalsh(differences)[::-1], answer)
        and _rounded(vectors.T @ vectors, np.eye(n))
        and _rounded(np.linalg.solve(differences, np.full(n, 1.0)), _parabola(n))
    )


def _parabola(n: int) -> np.ndarray:
    """The vector k (n + 1 - k) / 2, whose negative second differences are one."""
    k = np.arange(1, n + 1)
    return k * (n + 1 - k) / 2


def random_numbers() -> bool:
    """Threefry-2x32 with 20 rounds: test vectors of its authors (Random123)."""
    vectors = (
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((2**32 - 1,) * 2, (2**32 - 1,) * 2, (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    )
    return all(
        _exact(threefry_2x32(*np.array([key, counter], np.uint32)), np.array(answer, np.uint32))
        for key, counter, answer in vectors
    )


def functions_and_flows() -> bool:
    """A Gaussian integral, a logistic curve, the exponential of a shift matrix, and erf."""
    area, _ = integrate.quad(lambda x: np.exp(-(x**2)), -np.inf, np.inf)
    flow = integrate.solve_ivp(
        lambda t, u: 2 * (1 - u) * u, (0, 3), [0.01], rtol=1e-12, atol=1e-12, method="DOP853"
    )
    logistic = 1 / (1 + 99 * np.exp(-6.0))
    shift = linalg.expm(np.diag(np.ones(3), 1))
    return (
        _rounded(area, np.sqrt(np.pi))
        and _rounded(flow.y[0, -1], logistic)
        and _rounded(shift[0], [1, 1, 1 / 2, 1 / 6])
        and _rounded(special.erf(special.erfinv(0.3)), 0.3)
    )


PROBLEMS: tuple[Callable[[], bool], ...] = (
    products_then_sums,
    writes_into_constants,
    descent_in_a_scan,
    gates_of_units,
    singular_values,
    random_numbers,
    functions_and_flows,
)


def wrong_answers() -> Iterator[str]:
    """Names of the problems that the installed libraries solve incorrectly."""
    with jax.enable_x64(True):
        for problem in PROBLEMS:
            if not problem():
                yield problem.__name__.replace("_", " ")


def require_right_answers() -> None:
    """Checks that the installed libraries solve all problems correctly.

    Raises:
        UserError: a problem has a wrong answer; the message gives the versions.
    """
    if mistakes := list(wrong_answers()):
        versions = ", ".join(f"{name} {version(name)}" for name in STACK)
        raise UserError(
            f"the numerical libraries ({versions}, Python {platform.python_version()}, "
            f"{platform.machine()}, {jax.default_backend()}) compute wrong numbers, so results "
            f"cannot be trusted; wrong are: {', '.join(mistakes)}",
            remedy="install the versions of requirements.lock (make install in a fresh .venv), or "
            "exclude the wrong release in pyproject.toml and lock again (make lock)",
        )


def main() -> int:
    """Prints the error, if any, and returns the exit status."""
    try:
        require_right_answers()
    except UserError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
