"""The icicle as SVG."""

import re

from pandas_dptree.output.pictures.boxes import boxes_of, height_for
from pandas_dptree.output.pictures.icicle_svg import icicle_svg
from pandas_dptree.output.released import Released
from tests.helpers_output import HOSTILE, text_of


def test_every_box_is_a_rectangle_with_its_name_and_value(counts):
    svg = icicle_svg(counts, title="Visits & more", description="Regions", identifier="visits")
    released = Released.of(counts)
    drawn = boxes_of(released, released.shown(), height_for(released))
    assert svg.count("<rect") == len(drawn)
    assert svg.count("url(#visits-few)") == sum(box.pooled for box in drawn)
    assert f"<title>Aldmark: {counts.set_index('region')['count'].loc['Aldmark'].iloc[0]:,}</title>" in svg
    assert '<title id="visits-title">Visits &amp; more</title>' in svg
    assert 'aria-labelledby="visits-title" aria-describedby="visits-desc"' in svg
    assert svg.count("<foreignObject") == sum(box.height >= 15 for box in drawn)
    ends = [
        float(x) + float(width) for x, width in re.findall(r'<rect x="([\d.]+)%".*? width="([\d.]+)%"', svg)
    ]
    assert max(ends) < 100


def test_names_are_escaped(hostile):
    tree, text = text_of(
        f"<!DOCTYPE html><title>safe</title>{icicle_svg(hostile, title=HOSTILE[0], description=HOSTILE[1])}"
    )
    assert tree.find(".//script") is None and tree.find(".//img") is None
    assert HOSTILE[0] in text and HOSTILE[1] in text


def test_a_browser_shows_the_icicle(hostile, tmp_path, browse):
    path = tmp_path / "icicle.html"
    path.write_text(
        f"<!DOCTYPE html><title>safe</title>{icicle_svg(hostile, title=HOSTILE[0], description=HOSTILE[1])}",
        "utf-8",
    )
    tree, text = browse(path)
    assert tree.find("head/title").text == "safe"
    assert all(name in text for name in ("Žižkov 東京 🏥", "None", HOSTILE[0]))
