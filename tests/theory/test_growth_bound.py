"""The growth bound of theorem 3, against gradient flow of random deep linear nets."""

from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, solve_ivp

from neuralrace.theory.growth_bound import (
    QUOTED_KAPPA1,
    QUOTED_KAPPA2,
    GrowthLaw,
    fastest_time,
    fastest_time_as_written,
    fastest_time_deep,
    growth_bound,
    growth_constants,
    growth_rate_bound,
    layer_strength,
    residual_slack,
    rise_sharpness,
)

# The nets of the paper's section 4. With whitened inputs and noiseless linear targets sigma_yx is
# the target matrix itself, so the 1200 samples need not be drawn.
WIDTHS = {2: (10, 6, 3), 3: (10, 8, 4, 3), 4: (10, 8, 6, 4, 3)}


class Ensemble:
    """Gradient flow of a linear net from a normal Glorot initialisation."""

    def __init__(self, widths, seed, sigma_yx=None, weights=None, duration=8.0):
        rng = np.random.default_rng(seed)
        shapes = list(zip(widths[1:], widths[:-1], strict=True))
        self.sigma_yx = rng.normal(size=(widths[-1], widths[0])) if sigma_yx is None else sigma_yx
        if weights is None:
            weights = [rng.normal(size=s) * np.sqrt(2 / sum(s)) for s in shapes]
        cuts = np.cumsum([w.size for w in weights])[:-1]

        def unpack(z):
            return [part.reshape(s) for part, s in zip(np.split(z, cuts), shapes, strict=True)]

        def velocity(_, z):
            return np.concatenate([r.ravel() for r in self.rates(unpack(z))])

        self.depth = len(weights)
        self.time = np.concatenate([[0.0], np.geomspace(1e-4 * duration, duration, 60)])
        solution = solve_ivp(
            velocity,
            (0, duration),
            np.concatenate([w.ravel() for w in weights]),
            "LSODA",
            t_eval=self.time,
            rtol=1e-8,
            atol=1e-10,
        )
        self.states = [unpack(z) for z in solution.y.T]
        self.norms = np.array([[np.linalg.norm(w) for w in s] for s in self.states])
        products = [self.product(s) for s in self.states]
        self.product_norm = np.array([np.linalg.norm(p) for p in products])
        self.residual_norm = np.array([np.linalg.norm(self.sigma_yx - p) for p in products])
        self.sigma_norm = float(np.linalg.norm(self.sigma_yx))
        self.constants = growth_constants(self.norms, self.product_norm, self.sigma_norm)
        self.strength = layer_strength(self.norms, self.constants.gap)
        kappas = self.constants.kappa1, self.constants.kappa2
        self.law = GrowthLaw(self.depth, *kappas, self.sigma_norm)

    @staticmethod
    def product(weights):
        return reduce(lambda below, w: w @ below, weights)

    def rates(self, weights):
        (n_out, n_in), error = self.sigma_yx.shape, self.sigma_yx - self.product(weights)
        below = [self.product([np.eye(n_in), *weights[:k]]) for k in range(len(weights))]
        above = [self.product([*weights[k + 1 :], np.eye(n_out)]) for k in range(len(weights))]
        return [a.T @ error @ b.T for a, b in zip(above, below, strict=True)]


@pytest.fixture(scope="module", params=[(2, 0), (2, 1), (3, 0), (3, 1), (4, 0), (4, 1)], ids=str)
def run(request):
    depth, seed = request.param
    return Ensemble(WIDTHS[depth], seed)


def test_run_is_trained(run):
    assert run.residual_norm[-1] < 0.05 * run.sigma_norm


def test_computed_constants_dominate_every_layer_and_the_product(run):
    starts = run.strength[0]
    own = growth_bound(run.time, starts, run.law)
    assert (own * (1 + 1e-9) >= run.strength.T).all()
    largest = growth_bound(run.time, starts.max(), run.law)
    assert (run.strength.max(axis=-1) <= largest * (1 + 1e-9)).all()
    assert (run.norms.prod(axis=-1) <= largest).all()


def test_growth_rate_is_bounded_at_every_time(run):
    for state, norms, strength in zip(run.states, run.norms, run.strength, strict=True):
        radial = [np.vdot(w, r) for w, r in zip(state, run.rates(state), strict=True)]
        rate = run.depth * strength ** (1 - 1 / run.depth) * np.array(radial) / norms
        bound = growth_rate_bound(strength, run.law)
        assert (rate <= bound).all()


def test_least_time_is_below_the_measured_time(run):
    strongest = run.strength.max(axis=-1)
    least = fastest_time(strongest, strongest[0], run.law)
    assert (least <= run.time * (1 + 1e-9)).all()
    assert least[-1] > 0


def test_quoted_constants_do_not_dominate_deeper_nets(run):
    quoted_law = GrowthLaw(run.depth, QUOTED_KAPPA1, QUOTED_KAPPA2, run.sigma_norm)
    quoted = growth_bound(run.time, run.strength[0].max(), quoted_law)
    exceeds = (run.strength.max(axis=-1) > 1.2 * quoted).any()
    assert exceeds == (run.depth > 2)
    if run.depth == 4:
        assert (run.norms.prod(axis=-1) > 1.2 * quoted).any()


def test_quoted_kappa2_is_not_what_the_definition_gives(run):
    assert run.constants.kappa2 < 0.5 < QUOTED_KAPPA2


def test_gap_is_not_fixed_at_initialisation():
    # equal norms at the start, but different layers at the end
    weights = [np.array([[1.0, 0.0]]), np.array([[1.0], [0.0]])]
    initial = Ensemble((2, 1, 2), 0, np.diag([3.0, 0.0]), weights)
    assert initial.constants.gap < 1e-6
    gaps = np.ptp(Ensemble(WIDTHS[2], 0).norms, axis=-1)
    assert np.ptp(gaps) > 0.05


def test_constants_are_computed_for_every_run():
    rng = np.random.default_rng(0)
    norms = rng.uniform(0.5, 2, (2, 3, 11, 4))
    product_norm, sigma_norm = rng.uniform(0.1, 0.5, (2, 3, 11)), rng.uniform(1, 2, (2, 3))
    batch = growth_constants(norms, product_norm, sigma_norm)
    single = growth_constants(norms[1, 2], product_norm[1, 2], sigma_norm[1, 2])
    for name in ("gap", "kappa1", "kappa1_as_written", "kappa2"):
        assert getattr(batch, name).shape == (2, 3)
        assert getattr(batch, name)[1, 2] == getattr(single, name)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 2**32 - 1), log_scale=st.floats(-3, 3))
def test_residual_inequality_holds_with_a_sufficient_kappa1(seed, log_scale):
    rng = np.random.default_rng(seed)
    sigma, product = rng.normal(size=(3, 10)), 10**log_scale * rng.normal(size=(3, 10))
    norms = [np.linalg.norm(m) for m in (sigma - product, product, sigma)]
    assert residual_slack(*norms, norms[1] / norms[2]) >= -1e-12 * norms[1]


def test_residual_inequality_fails_with_kappa1_as_written():
    # product = -2 sigma: the residual is 3, the printed right-hand side 2 - 2 = 0
    assert residual_slack(3.0, 2.0, 1.0, 0.5) == pytest.approx(-3.0)
    assert residual_slack(3.0, 2.0, 1.0, 2.0) == pytest.approx(0.0)
    # and in training: an initial product larger than the target
    large = Ensemble(WIDTHS[2], 3, sigma_yx=0.2 * np.random.default_rng(9).normal(size=(3, 10)))
    c = large.constants
    slack = [
        residual_slack(large.residual_norm, large.product_norm, large.sigma_norm, kappa1)
        for kappa1 in (c.kappa1_as_written, c.kappa1)
    ]
    assert slack[0].min() < 0 <= slack[1].min()


TIMES = np.linspace(0, 2, 41)
K1, K2, SIGMA = 1.2, 0.4, 0.9
LIMIT = (2 * K1 + 1) * SIGMA
PLATEAU = LIMIT / K2


def law(depth, kappa2=K2):
    return GrowthLaw(depth, K1, kappa2, SIGMA)


def test_bound_of_one_layer_is_exponential_relaxation():
    expected = PLATEAU + (0.3 - PLATEAU) * np.exp(-K2 * TIMES)
    np.testing.assert_allclose(growth_bound(TIMES, 0.3, law(1)), expected, rtol=1e-9)


def test_bound_of_two_layers_is_logistic():
    expected = PLATEAU / (1 + (PLATEAU / 0.3 - 1) * np.exp(-2 * LIMIT * TIMES))
    np.testing.assert_allclose(growth_bound(TIMES, 0.3, law(2)), expected, rtol=1e-9)


@pytest.mark.parametrize("depth", [3, 4, 10])
@pytest.mark.parametrize("u0", [0.02, 1.0, 1.5 * PLATEAU])
def test_bound_solves_eq17_with_equality(depth, u0):
    def velocity(_, u):
        return depth * u ** (2 - 2 / depth) * (LIMIT - K2 * u)

    times = np.linspace(0, 0.3, 20)
    direct = solve_ivp(velocity, (0, 0.3), [u0], "Radau", t_eval=times, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(growth_bound(times, u0, law(depth)), direct.y[0], rtol=2e-6)


def test_bound_stays_on_the_plateau_and_reaches_it():
    np.testing.assert_array_equal(growth_bound(TIMES, PLATEAU, law(3)), PLATEAU)
    late = growth_bound(np.array([1e6]), 1e-3, law(4))
    np.testing.assert_allclose(late, PLATEAU, rtol=1e-12)


def test_bound_starts_at_its_start():
    np.testing.assert_allclose(growth_bound(np.zeros(1), 0.3, law(3)), 0.3, rtol=1e-12)


def test_bound_of_many_runs_is_the_bound_of_each():
    u0, kappa2 = np.array([[0.01], [0.5]]), np.array([0.1, 0.4, 0.9])
    curves = growth_bound(TIMES, u0, law(3, kappa2))
    assert curves.shape == (2, 3, TIMES.size)
    for i, j in np.ndindex(2, 3):
        single = growth_bound(TIMES, u0[i, 0], law(3, kappa2[j]))
        np.testing.assert_allclose(curves[i, j], single, rtol=1e-8)


def test_a_run_without_finite_constants_does_not_affect_the_others():
    kappa2 = np.array([np.nan, K2])
    curves = growth_bound(TIMES, 0.3, law(3, kappa2))
    assert np.isnan(curves[0]).all()
    np.testing.assert_array_equal(curves[1], growth_bound(TIMES, 0.3, law(3)))
    assert np.isnan(growth_bound(TIMES, 0.3, law(3, np.nan))).all()
    np.testing.assert_array_equal(np.isnan(fastest_time(0.5, 0.3, law(3, kappa2))), [True, False])


@pytest.mark.parametrize("kwargs", [{"u0": 0.0}, {"law": law(3, 0.0)}, {"time": TIMES[::-1]}])
def test_bound_rejects_what_it_cannot_solve(kwargs):
    with pytest.raises(ValueError, match=r"positive|increasing"):
        growth_bound(**({"time": TIMES, "u0": 0.1, "law": law(3)} | kwargs))


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 7, 50])
@pytest.mark.parametrize(("u0", "u"), [(1e-3, 0.5), (0.5, 3.0), (2.0, 0.999 * PLATEAU)])
def test_least_time_is_the_integral_of_the_inverse_rate(depth, u0, u):
    integral, _ = quad(
        lambda z: np.exp(z) / growth_rate_bound(np.exp(z), law(depth)),
        np.log(u0),
        np.log(u),
        epsabs=0,
        epsrel=1e-11,
    )
    assert fastest_time(u, u0, law(depth)) == pytest.approx(integral, rel=1e-9)


@pytest.mark.parametrize("depth", [1, 2, 3, 6])
def test_least_time_inverts_the_bound(depth):
    times = np.linspace(0.01, 0.4, 9)
    curve = growth_bound(times, 0.4, law(depth))
    np.testing.assert_allclose(fastest_time(curve, 0.4, law(depth)), times, rtol=1e-7)


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("u0", [0.05, 1.5])
def test_sharpness_equals_the_sharpness_of_the_curve(depth, u0):
    other = GrowthLaw(depth, 0.9, 0.5, 2.0)
    time = np.linspace(0, 1.1 * fastest_time(9.0, u0, other), 200001)
    curve = growth_bound(time, u0, other)
    risen = curve <= 9.0
    rate = np.diff(curve)[risen[1:]] / np.diff(time)[risen[1:]]
    mean = (curve[risen][-1] - u0) / time[risen][-1]
    assert rise_sharpness(9.0, u0, other) == pytest.approx(rate.max() / mean, rel=1e-3)
    assert np.isnan(rise_sharpness(u0 / 2, u0, other))


def test_least_time_outside_the_bound_is_trivial():
    u = np.array([0.2, 0.3, PLATEAU, 2 * PLATEAU])
    np.testing.assert_array_equal(fastest_time(u, 0.3, law(3)), [0.0, 0.0, np.inf, np.inf])


@pytest.mark.parametrize(("u0", "u"), [(1e-2, 0.5), (0.5, 6.0)])
def test_deep_time_integrates_eq23_and_eq18_as_written_does_not(u0, u):
    integral, _ = quad(lambda z: 1 / (5 * z**2 * (LIMIT - K2 * z)), u0, u, epsabs=0, epsrel=1e-11)
    assert fastest_time_deep(u, u0, law(5)) == pytest.approx(integral, rel=1e-9)
    if u < LIMIT:
        written = fastest_time_as_written(u, u0, law(5))
        assert written < 0.5 * integral
    else:
        assert np.isnan(fastest_time_as_written(u, u0, law(5)))
    assert np.isnan(fastest_time_deep(PLATEAU, u0, law(5)))


def test_eq18_as_written_is_right_for_unit_kappa2():
    arguments = (2.0, 0.1, law(6, 1.0))
    assert fastest_time_as_written(*arguments) == pytest.approx(fastest_time_deep(*arguments))


@pytest.mark.parametrize("depth", [2, 3, 8])
def test_deep_time_is_no_bound_below_unit_strength(depth):
    assert fastest_time_deep(0.9, 0.01, law(depth)) > fastest_time(0.9, 0.01, law(depth))
    assert fastest_time_deep(3.0, 1.0, law(depth)) < fastest_time(3.0, 1.0, law(depth))


def test_a_chain_of_scalars_outruns_the_deep_time():
    chain = Ensemble((1, 1, 1), 0, np.ones((1, 1)), [np.full((1, 1), 0.1)] * 2)
    strength = chain.strength[:, 0]
    half = np.argmax(strength > 0.5)
    arguments = (strength[half], strength[0], chain.law)
    assert fastest_time(*arguments) <= chain.time[half] < fastest_time_deep(*arguments)
