"""Eigenmodes of second moments and covariances."""

import numpy as np
from jaxtyping import Float


def eigenmodes(
    moment: Float[np.ndarray, "input input"], name: str
) -> tuple[Float[np.ndarray, " mode"], Float[np.ndarray, "input mode"], float]:
    """Eigenvalues and eigenvectors of a matrix that is to be positive semidefinite.

    Args:
        moment: the matrix.
        name: what to call it in a message.

    Returns:
        Eigenvalues, ascending, 0 where they are no larger than rounding; eigenvectors in columns;
        and rounding, (size) x (machine precision) of the largest eigenvalue.

    Raises:
        ValueError: if the matrix is not symmetric or positive semidefinite.
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
