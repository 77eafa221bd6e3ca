"""How processes that tests start handle signals: they inherit what is ignored."""

import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ignoring(ignored: Collection[str] = ()) -> Iterator[None]:
    """Processes that start inside ignore these signals only.

    Workers of pytest-xdist ignore SIGINT, so that their child processes would too. Not by
    `preexec_fn`, whose fork JAX warns of.
    """
    before = {}
    for number in NUMBERS:
        handler = signal.SIG_IGN if number.name in ignored else signal.SIG_DFL
        before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
