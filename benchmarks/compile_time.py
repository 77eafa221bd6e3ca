"""What of a run is compilation."""

import jax


class CompileTime:
    """Seconds that JAX spends on tracing, lowering and compiling."""

    def __init__(self):
        self.seconds = 0.0
        jax.monitoring.register_event_duration_secs_listener(self._add)

    def _add(self, event: str, seconds: float, **_: str) -> None:
        if event.startswith("/jax/core/compile/"):
            self.seconds += seconds
