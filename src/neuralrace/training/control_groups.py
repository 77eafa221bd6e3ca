"""Control groups of Linux: what a container or a scheduler grants to this process."""

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path


def group_files(
    system: Path, names: tuple[str, ...], controller: str = ""
) -> Iterator[tuple[str, ...]]:
    """Contents of files in each control group of this process that has all of them.

    Args:
        system: root of the file system in which the kernel publishes control groups.
        names: names of the files.
        controller: controller of version 1, such as "cpu"; empty for version 2.

    Yields:
        One text for each name, innermost group first.
    """
    mount, groups = system / "sys/fs/cgroup" / controller, system / "proc/self/cgroup"
    lines = groups.read_text(encoding="utf-8") if groups.is_file() else ""
    of_controller = rf"\d+:(?:\w+,)*{controller}(?:,\w+)*" if controller else "0:"
    line = re.search(f"^{of_controller}:/(.*)$", lines, re.M)
    group = mount / (line[1] if line else "")
    # A container may see the path that its host uses, which does not exist inside: its own group is
    # then the mount itself. The root group has none of these files.
    for folder in takewhile(lambda each: each != mount.parent, (group, *group.parents)):
        try:
            texts = tuple((folder / name).read_text(encoding="utf-8").strip() for name in names)
        except OSError:
            continue
        yield texts
