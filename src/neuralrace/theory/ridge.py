"""Ridge regression from second moments: the best linear map without an intercept.

A sample enters only through its moments and its number of items. With sigma_xx = V diag(d) V^T,
every quantity is a sum over the eigenvalues d. A penalty leaves the share penalty/(d + penalty) of
the residual in each direction. Directions without input have weight 0.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from neuralrace.extensions.representation import short_repr


@dataclass(frozen=True)
class Ridge:
    """Ridge regression of one sample, for all penalties from one eigendecomposition.

    Attributes:
        eigenvalues: eigenvalues of sigma_xx above rounding, ascending.
        eigenvectors: their eigenvectors, in columns.
        projected: sigma_yx V.
        y_power: <|y|^2>.
        items: number of items that the moments are averages over.
    """

    eigenvalues: Float[np.ndarray, " mode"]
    eigenvectors: Float[np.ndarray, "input mode"]
    projected: Float[np.ndarray, "output mode"]
    y_power: float
    items: int

    __repr__ = short_repr

    @property
    def penalties(self) -> Float[np.ndarray, " penalty"]:
        """Penalties to choose from: 0 and every eigenvalue, which halves one direction more."""
        return np.concatenate([np.zeros(1), self.eigenvalues])

    def weights(self, penalty: float) -> Float[np.ndarray, "output input"]:
        """The minimum of <|y - W x|^2> + penalty |W|^2, sigma_yx (sigma_xx + penalty I)^-1.

        Args:
            penalty: at least 0. At 0 the weights are the least-squares weights of smallest norm.
        """
        return self.projected / (self.eigenvalues + penalty) @ self.eigenvectors.T

    def training_error(
        self, penalties: Float[np.ndarray, " penalty"]
    ) -> Float[np.ndarray, " penalty"]:
        """Relative squared error <|y - W x|^2>/<|y|^2> on the sample itself.

        Args:
            penalties: at least 0.
        """
        explained = np.sum(self.projected**2, axis=0) / self.eigenvalues
        least = max(self.y_power - float(explained.sum()), 0.0)  # rounding may make it negative
        return (least + self._shrinkage(penalties) ** 2 @ explained) / self.y_power

    def cross_validation(
        self, penalties: Float[np.ndarray, " penalty"]
    ) -> Float[np.ndarray, " penalty"]:
        """Generalised cross-validation, training error over (1 - degrees of freedom / items)^2.

        It estimates the relative squared error on fresh items. The degrees of freedom are the sum
        of d/(d + penalty), the trace of the map from the targets to the fit. The value is infinite
        if they equal the number of items: such a fit goes through every item.

        Args:
            penalties: at least 0.

        Source: Golub, Heath, Wahba 1979.
        """
        shrinkage = self._shrinkage(penalties).sum(axis=1)
        left = (self.items - len(self.eigenvalues) + shrinkage) / self.items
        error = self.training_error(penalties)
        return np.divide(error, left**2, where=left > 0, out=np.full(len(penalties), np.inf))

    @property
    def best_penalty(self) -> float:
        """The penalty among `penalties` with the smallest generalised cross-validation."""
        return float(self.penalties[np.argmin(self.cross_validation(self.penalties))])

    def _shrinkage(
        self, penalties: Float[np.ndarray, " penalty"]
    ) -> Float[np.ndarray, "penalty mode"]:
        """Share of the residual that remains in each direction."""
        return penalties[:, None] / (self.eigenvalues + penalties[:, None])


def ridge(
    eigenvalues: Float[np.ndarray, " input"],
    eigenvectors: Float[np.ndarray, "input input"],
    sigma_yx: Float[np.ndarray, "output input"],
    y_power: float,
    items: int,
) -> Ridge:
    """Ridge regression of y on x.

    Args:
        eigenvalues: eigenvalues of <x x^T>, ascending, from `datasets.second_moments.eigenmodes`,
            which sets those within rounding to 0.
        eigenvectors: their eigenvectors, in columns.
        sigma_yx: <y x^T> of the same sample.
        y_power: <|y|^2>, positive; 1 for one-hot targets.
        items: number of items in the sample.
    """
    positive = eigenvalues > 0
    v = eigenvectors[:, positive]
    return Ridge(eigenvalues[positive], v, sigma_yx @ v, y_power, items)


def relative_squared_error(
    weights: Float[np.ndarray, "*runs output input"],
    sigma_xx: Float[np.ndarray, "input input"],
    sigma_yx: Float[np.ndarray, "output input"],
    y_power: float,
) -> Float[np.ndarray, "*runs"]:
    """Relative squared error <|y - W x|^2>/<|y|^2> of linear maps on any sample.

    Args:
        weights: linear maps W.
        sigma_xx: <x x^T> of the sample.
        sigma_yx: <y x^T> of the sample.
        y_power: <|y|^2> of the sample, positive.
    """
    both = (-2, -1)
    explained = 2 * np.sum(weights * sigma_yx, both) - np.sum(weights @ sigma_xx * weights, both)
    return np.asarray(1 - explained / y_power)
