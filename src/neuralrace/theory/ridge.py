"""Ridge regression from second moments: the best that one linear map can do without an intercept.

A sample enters by its moments and its number of items alone. With sigma_xx = V diag(d) V^T, every
quantity here is a sum over the eigenvalues d, in which a penalty shrinks a direction by the factor
penalty/(d + penalty); directions without input have no weight.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class Ridge:
    """Ridge regression of one sample, for all penalties by one eigendecomposition.

    Attributes:
        eigenvalues: those of sigma_xx that are above rounding, ascending.
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

    @property
    def penalties(self) -> Float[np.ndarray, " penalty"]:
        """None, and one at every eigenvalue: each shrinks one more direction to half and less."""
        return np.concatenate([np.zeros(1), self.eigenvalues])

    def weights(self, penalty: float) -> Float[np.ndarray, "output input"]:
        """The minimum of <|y - W x|^2> + penalty |W|^2, sigma_yx (sigma_xx + penalty I)^-1.

        Args:
            penalty: from 0; there the weights are those of least squares, of several the shortest.
        """
        return self.projected / (self.eigenvalues + penalty) @ self.eigenvectors.T

    def training_error(
        self, penalties: Float[np.ndarray, " penalty"]
    ) -> Float[np.ndarray, " penalty"]:
        """<|y - W x|^2> over <|y|^2> on the sample itself.

        Args:
            penalties: from 0.
        """
        explained = np.sum(self.projected**2, axis=0) / self.eigenvalues
        least = max(self.y_power - float(explained.sum()), 0.0)  # what rounding leaves is no error
        return (least + self._shrinkage(penalties) ** 2 @ explained) / self.y_power

    def cross_validation(
        self, penalties: Float[np.ndarray, " penalty"]
    ) -> Float[np.ndarray, " penalty"]:
        """Generalised cross-validation, training error over (1 - degrees of freedom / items)^2.

        An estimate of the relative squared error on fresh items. Degrees of freedom are the sum of
        d/(d + penalty), the trace of the map from the targets to the fit. Infinite where there are
        as many as items: a fit that goes through every item says nothing about others.

        Args:
            penalties: from 0.

        Source: Golub, Heath, Wahba 1979.
        """
        shrinkage = self._shrinkage(penalties).sum(axis=1)
        left = (self.items - len(self.eigenvalues) + shrinkage) / self.items
        error = self.training_error(penalties)
        return np.divide(error, left**2, where=left > 0, out=np.full(len(penalties), np.inf))

    @property
    def best_penalty(self) -> float:
        """The one of `penalties` with the least generalised cross-validation."""
        return float(self.penalties[np.argmin(self.cross_validation(self.penalties))])

    def _shrinkage(
        self, penalties: Float[np.ndarray, " penalty"]
    ) -> Float[np.ndarray, "penalty mode"]:
        """What is left of the residual in each direction."""
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
        eigenvalues: those of <x x^T>, ascending, from `datasets.second_moments.eigenmodes`: 0
            where they are rounding.
        eigenvectors: their eigenvectors, in columns.
        sigma_yx: <y x^T> of the same sample.
        y_power: <|y|^2>, positive; 1 for one-hot targets.
        items: number of items in the sample.
    """
    there = eigenvalues > 0
    v = eigenvectors[:, there]
    return Ridge(eigenvalues[there], v, sigma_yx @ v, y_power, items)


def relative_squared_error(
    weights: Float[np.ndarray, "output input"],
    sigma_xx: Float[np.ndarray, "input input"],
    sigma_yx: Float[np.ndarray, "output input"],
    y_power: float,
) -> float:
    """<|y - W x|^2> over <|y|^2>, on any sample.

    Args:
        weights: W.
        sigma_xx: <x x^T> of the sample.
        sigma_yx: <y x^T> of the sample.
        y_power: <|y|^2> of the sample, positive.
    """
    explained = 2 * np.sum(weights * sigma_yx) - np.sum(weights @ sigma_xx * weights)
    return float(1 - explained / y_power)
