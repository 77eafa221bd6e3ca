"""Eigenmodes of second moments and covariances."""

import numpy as np
from jaxtyping import Float


def eigenmodes(
    moment: Float[np.ndarray, "input input"], name: str
) -> tuple[Float[np.ndarray, " mode"], Float[np.ndarray, "input mode"], float]:
    """Eigenvalues and eigenvectors of a positive semidefinite matrix.

    Args:
        moment: the matrix.
        name: name of the matrix, for messages.

    Returns:
        Ascending eigenvalues, 0 where they are no larger than the rounding error; eigenvectors in
        columns; and the rounding error, size x machine precision x the largest eigenvalue.

    Raises:
        ValueError: the matrix is not symmetric or positive semidefinite.
    """
    values, vectors = np.linalg.eigh(moment)
    rounding = float(len(values) * np.finfo(float).eps * np.abs(values).max())
    if np.abs(moment - moment.T).max() > rounding:
        raise ValueError(f"{name} is not symmetric")
    if values[0] < -rounding:
        raise ValueError(
            f"{name} is not positive semidefinite: its eigenvalues are {values[0]:.3g} to "
            f"{values[-1]:.3g}"
        )
    return np.where(values > rounding, values, 0), vectors, rounding
