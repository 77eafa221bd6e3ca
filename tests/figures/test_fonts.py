import io
import re
import zlib

import numpy as np
import pytest
from matplotlib.ft2font import FT2Font, LoadFlags
from matplotlib.style import context

from neuralrace.figures import fonts
from neuralrace.figures.fonts import REPLACED, cached_fonts
from neuralrace.figures.style import RC_PARAMS, Canvas, rc_context


def drawn(kind: str, **options) -> bytes:
    figure = Canvas(figsize=(3, 2))
    left, right = figure.subplots(1, 2)
    left.set_title(r"$\bf{a}$ First office: $s_1^2 = \frac{1}{2} \sum_i \hat{x}_i$")
    left.set_ylabel("bold and ΔV, ffi", fontweight="bold")
    right.plot([1e-3, 1, 1e3], [1, 10, 100])
    right.set(xscale="log", yscale="log", xlabel="italic", title=r"$\mathit{abc}$")
    with io.BytesIO() as content:
        figure.savefig(content, format=kind, **options)
        return content.getvalue()


def streams(pdf: bytes) -> dict[int, tuple[bytes, bytes]]:
    """Dictionary and unpacked stream of each object of a PDF file, by number."""
    found = {}
    for number, body in re.findall(rb"(\d+) 0 obj\n(.*?)endobj", pdf, re.DOTALL):
        head, _, stream = body.partition(b"stream\n")
        packed = b"FlateDecode" in head
        found[int(number)] = head, zlib.decompressobj().decompress(stream) if packed else b""
    return found


def outlines(pdf: bytes) -> dict[str, dict[int, tuple[bytes, bytes]]]:
    """Outline of each character of each embedded font, by name of the font."""
    objects = streams(pdf)

    def entry(head: bytes, key: str) -> bytes:
        found = re.search(rf"/{key} (\S+)".encode(), head)
        assert found
        return found[1]

    shapes = {}
    for head, _ in objects.values():
        if b"/CIDFontType2" not in head:
            continue
        descriptor, _ = objects[int(entry(head, "FontDescriptor"))]
        _, content = objects[int(entry(descriptor, "FontFile2"))]
        _, glyphs = objects[int(entry(head, "CIDToGIDMap"))]
        font = FT2Font(io.BytesIO(content))
        font.set_size(100, 72)
        shapes[entry(head, "BaseFont").decode()] = shape = {}
        for character, glyph in enumerate(np.frombuffer(glyphs, ">u2").tolist()):
            if glyph:
                font.load_glyph(glyph, flags=LoadFlags.NO_HINTING)
                shape[character] = tuple(part.tobytes() for part in font.get_path())
    return shapes


@pytest.mark.parametrize(("kind", "options"), [("rgba", {"dpi": 130}), ("svg", {})])
def test_cached_fonts_change_no_byte_of_a_picture(kind: str, options: dict):
    metadata = {"metadata": {"Date": None}} if kind == "svg" else {}
    with context(RC_PARAMS, after_reset=True):
        plain = drawn(kind, **options, **metadata)
    with rc_context():
        first, second = (drawn(kind, **options, **metadata) for _ in range(2))
    assert plain == first == second


def test_embedded_glyphs_have_the_outlines_and_places_of_the_whole_font():
    with context(RC_PARAMS, after_reset=True):
        plain = drawn("pdf")
    with rc_context():
        reduced = drawn("pdf")
    shapes = outlines(plain)
    assert len(shapes) >= 3
    assert sum(map(len, shapes.values())) > 30
    assert outlines(reduced) == shapes
    texts = [
        sorted(stream for _, stream in streams(pdf).values() if b"BT" in stream[:9000])
        for pdf in (plain, reduced)
    ]
    assert texts[0] == texts[1] != []
    assert len(reduced) < len(plain)


def test_each_formula_is_parsed_once_at_a_resolution():
    with rc_context():
        drawn("rgba", dpi=130)
        before = fonts._parsed.cache_info()
        drawn("rgba", dpi=130)
        after = fonts._parsed.cache_info()
    assert after.misses == before.misses
    assert after.hits > before.hits


def test_matplotlib_is_as_before_after_an_error():
    before = [getattr(owner, name) for owner, name, _ in REPLACED]

    def fail() -> None:
        with cached_fonts():
            assert [getattr(owner, name) for owner, name, _ in REPLACED] != before
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert [getattr(owner, name) for owner, name, _ in REPLACED] == before
