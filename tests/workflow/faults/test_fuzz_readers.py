"""Every reader of files that may come from anybody, for some time."""

import time
from itertools import count

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from fuzzing import EDITS, KINDS, reader

pytestmark = pytest.mark.faults
SECONDS = 4.0
"""Time for each kind of file, times the number of repetitions."""
AT_ONCE = 100


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_was_changed_at_random_is_read_or_refused(tmp_path, injecting, kind, repeat):
    end, wrong = time.monotonic() + SECONDS * repeat, []
    with (
        injecting(
            kind, group="Files changed at random", recovers="restore the file",
            chance=True,
        ) as fault,
        reader(tmp_path) as reading,
    ):  # fmt: skip

        def read(edits, sealed):
            with fault.injection():
                said = reading.read_edited(kind, edits, sealed)
            if said not in ("read", "refused"):
                wrong.append((edits, sealed, said))
            assert not wrong

        for turn in count():
            if time.monotonic() > end and turn:
                break
            quiet = settings(
                max_examples=AT_ONCE, database=None, deadline=None, derandomize=False,
                suppress_health_check=list(HealthCheck),
            )  # fmt: skip
            seed(turn)(quiet(given(edits=EDITS, sealed=st.booleans())(read)))()
        fault.wrong += len(wrong)
        fault.message = "FILE: cannot be read (why); it is damaged, or no result file ..."
