"""The graph of the workflow's rules as a picture: `make rulegraph` writes it to `docs/rules.svg`.

It is drawn from what `snakemake --rulegraph dot` prints. Columns are steps, from left to right;
what nothing rests on is a target that a person asks for.
"""

import re
import sys
from html import escape
from itertools import pairwise
from pathlib import Path

import networkx as nx

WIDTH, HEIGHT, ACROSS, DOWN, EDGE = 128, 30, 172, 46, 10
"""Of boxes, of the grid that they stand in, and of the margin; in points."""
SWEEPS = 8
"""How often columns are sorted by their neighbours."""


def read_dot(text: str) -> nx.DiGraph:
    """The graph that Snakemake prints, of names of rules."""
    names = dict(re.findall(r'(\d+)\[label = "(\w+)"', text))
    graph = nx.DiGraph()
    graph.add_nodes_from(sorted(names.values()))
    edges = re.findall(r"(\d+) -> (\d+)", text)
    graph.add_edges_from(sorted((names[one], names[other]) for one, other in edges))
    return graph


def routed(graph: nx.DiGraph) -> tuple[list[list[str]], dict[tuple[str, str], list[str]]]:
    """Columns of names, and each edge as a way from column to column.

    Where an edge passes a column it has a place of its own there, an empty name with a number, so
    that it crosses no box.
    """
    columns = [sorted(column) for column in nx.topological_generations(graph)]
    level = {name: i for i, column in enumerate(columns) for name in column}
    ways, steps = {}, nx.Graph()
    for one, other in graph.edges:
        way = [one]
        for i in range(level[one] + 1, level[other]):
            way.append(f" {len(columns[i])} {i}")
            columns[i].append(way[-1])
        way.append(other)
        ways[one, other] = way
        nx.add_path(steps, way)
    for _ in range(SWEEPS):
        for step, order in ((-1, range(1, len(columns))), (1, range(len(columns) - 2, -1, -1))):
            for i in order:
                place = {name: rank for rank, name in enumerate(columns[i + step])}
                middle = {}
                for rank, name in enumerate(columns[i]):
                    beside = [place[n] for n in steps.adj.get(name, ()) if n in place]
                    middle[name] = sum(beside) / len(beside) if beside else rank
                columns[i].sort(key=lambda name: (middle[name], name))
    return columns, ways


def drawn(graph: nx.DiGraph) -> str:
    """The picture, as SVG."""
    columns, ways = routed(graph)
    rows = max(map(len, columns))
    at = {
        name: (EDGE + i * ACROSS, EDGE + DOWN * (rank + (rows - len(column)) / 2))
        for i, column in enumerate(columns)
        for rank, name in enumerate(column)
    }
    size = 2 * EDGE + (len(columns) - 1) * ACROSS + WIDTH, 2 * EDGE + (rows - 1) * DOWN + HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]:g}" '
        f'width="{size[0]}" font-family="sans-serif" font-size="13">',
        '<rect width="100%" height="100%" fill="white"/>',
        '<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L8 4L0 8z" fill="#777"/></marker>',
    ]
    for (one, other), way in ways.items():
        path = f"M{at[one][0] + WIDTH} {at[one][1] + HEIGHT / 2:g}"
        for name, after in pairwise(way):
            (x, y), (ahead, below) = at[name], at[after]
            middle = (x + WIDTH + ahead) / 2
            y, below = y + HEIGHT / 2, below + HEIGHT / 2
            path += f"C{middle:g} {y:g} {middle:g} {below:g} {ahead} {below:g}"
            if after != other:
                path += f"H{ahead + WIDTH}"
        lines.append(
            f'<path d="{path}" fill="none" stroke="#777" stroke-width="1.3" '
            f'marker-end="url(#tip)"><title>{escape(one)} before {escape(other)}</title></path>'
        )
    for name in graph:
        x, y = at[name]
        target = not graph.out_degree(name)
        fill, weight = ("#333", "bold") if target else ("#e4ecf5", "normal")
        lines += [
            f'<rect x="{x}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="{fill}" '
            'stroke="#333"/>',
            f'<text x="{x + WIDTH / 2:g}" y="{y + 20:g}" text-anchor="middle" '
            f'font-weight="{weight}" fill="{"white" if target else "black"}">{escape(name)}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(drawn(read_dot(sys.stdin.read())), encoding="utf-8")
