"""What every job of the workflow does around its work: a log, and messages for people."""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from neuralrace.errors import UserError

Say = Callable[[str], None]


@contextmanager
def job(name: str, log: str) -> Iterator[Say]:
    """A job that reports to the terminal and to its log.

    Yields a function that writes one line of progress. A `UserError` ends the process with its
    message and exit status 1, without a traceback; any other error is a bug and keeps its own.
    """
    logger = logging.getLogger("neuralrace")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    for handler in (logging.FileHandler(log, mode="w"), logging.StreamHandler(sys.stderr)):
        handler.setFormatter(logging.Formatter(f"%(asctime)s {name}: %(message)s", "%H:%M:%S"))
        logger.addHandler(handler)
    try:
        yield logger.info
    except UserError as error:
        logger.error("error: %s", error)
        sys.exit(1)
    except Exception:
        logger.exception("unexpected error")
        raise
