"""The pictures in the docs are what the pages draw: compared in squares, since no two machines draw letters alike."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

import pytest

from scripts.write_screenshots import IMAGES, a_fleet, part, pictures, whole
from tests.browser.conftest import WIDE, Opened
from tests.builders.served import at_a_port

pytestmark = pytest.mark.browser

SQUARE = 16
"""Pixels: the mean of a square hardly changes where letters are smoothed or hinted in another way."""
OTHER = 24
"""Of 255: a square is another one if its mean differs by more, of any colour."""
OTHER_SHARE_MAX = 0.01
"""So many of the squares may be others. A picture without its chart has ten times as many."""
WRITE = "python -m scripts.write_screenshots"
_MEANS = """async ([picture, square]) => {
  const bytes = Uint8Array.from(atob(picture), letter => letter.charCodeAt(0));
  const bitmap = await createImageBitmap(new Blob([bytes])), { width, height } = bitmap;
  const drawn = new OffscreenCanvas(width, height).getContext("2d");
  drawn.drawImage(bitmap, 0, 0);
  const { data } = drawn.getImageData(0, 0, width, height);
  const columns = Math.ceil(width / square), rows = Math.ceil(height / square);
  const sums = new Float64Array(columns * rows * 4);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const to = 4 * (Math.floor(y / square) * columns + Math.floor(x / square)), from = 4 * (y * width + x);
      for (let colour = 0; colour < 3; colour++) sums[to + colour] += data[from + colour];
      sums[to + 3]++;
    }
  const means = [];
  for (let at = 0; at < sums.length; at += 4) means.push([0, 1, 2].map(colour => sums[at + colour] / sums[at + 3]));
  return { width, height, means };
}"""


@dataclass(frozen=True, slots=True)
class Squares:
    """A picture as the mean colours of its squares."""

    size: tuple[int, int]
    means: list[list[float]]

    def others(self, other: Squares) -> float:
        """The share of squares that differ; all of them where the sizes do."""
        if self.size != other.size:
            return 1.0
        pairs = zip(self.means, other.means, strict=True)
        differ = [max(abs(a - b) for a, b in zip(*pair, strict=True)) > OTHER for pair in pairs]
        return sum(differ) / len(differ)


def squares(page: Any, picture: bytes) -> Squares:
    """Worked out by the browser, which reads PNG."""
    found = page.evaluate(_MEANS, [base64.b64encode(picture).decode(), SQUARE])
    return Squares((found["width"], found["height"]), found["means"])


def committed(page: Any, name: str) -> Squares:
    return squares(page, (IMAGES / f"{name}.png").read_bytes())


def test_the_pictures_of_the_docs_are_what_the_pages_draw(chromium: Any) -> None:
    blank = chromium.new_context().new_page()
    others = {name: squares(blank, picture).others(committed(blank, name)) for name, picture in pictures(chromium)}
    assert set(others) == {file.stem for file in IMAGES.glob("*.png")}
    wrong = {name: f"{share:.1%}" for name, share in others.items() if share > OTHER_SHARE_MAX}
    assert wrong == {}, f"look at them, then: {WRITE}"


def test_a_chart_that_is_missing_or_another_colour_would_be_noticed(chromium: Any) -> None:
    blank = chromium.new_context().new_page()
    served = a_fleet()
    with at_a_port(served.control) as url:
        page = Opened(chromium, WIDE).log_in(url)
        assert squares(blank, whole(page, f"{url}/ui/")).others(committed(blank, "web-ui-fleet")) <= OTHER_SHARE_MAX
        page.locator("main canvas").first.evaluate("canvas => { canvas.style.visibility = 'hidden' }")
        without = squares(blank, page.screenshot())
        assert without.others(committed(blank, "web-ui-fleet")) > 5 * OTHER_SHARE_MAX
        page.goto(f"{url}/ui/queue")
        page.get_by_label("How far back").select_option("the last 6 hours")
        other = squares(blank, part(page, "The queue over time"))
        assert other.others(committed(blank, "web-ui-queue")) > OTHER_SHARE_MAX, "of another span of time"
        page.emulate_media(color_scheme="dark")
        page.goto(f"{url}/ui/")
        assert squares(blank, whole(page, f"{url}/ui/")).others(committed(blank, "web-ui-fleet")) > 0.5
