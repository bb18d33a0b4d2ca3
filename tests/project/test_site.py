"""The documentation in a browser: complete, readable, and found by the search.

`nox -s site` builds the pages and runs these tests in Chromium. They are skipped
without selenium, the browser, or its driver.
"""

import shutil

import pytest

from dmljax._operators import OPERATORS
from tests.project.texts import ROOT

SITE = ROOT / "docs" / "_build" / "html"
ADDRESS = SITE.as_uri()
BROWSER = shutil.which("chromium")
DRIVER = shutil.which("chromedriver")
conf = pytest.importorskip("docs.conf", exc_type=ImportError)
webdriver = pytest.importorskip("selenium.webdriver", exc_type=ImportError)
wait = pytest.importorskip("selenium.webdriver.support.wait", exc_type=ImportError)
if not (BROWSER and DRIVER):
    pytest.skip("chromium or chromedriver is not installed", allow_module_level=True)
if not (SITE / "index.html").exists():
    reason = f"{SITE} is not built; run nox -s site, which builds and tests it"
    pytest.skip(reason, allow_module_level=True)

HEIGHT = 900
WIDTHS = {"a laptop": 1280, "a tablet": 800, "a phone": 390}  # in CSS pixels
# Sphinx makes these pages, without content of their own.
MADE = {"genindex", "search", "py-modindex"}
FILES = [path.relative_to(SITE) for path in SITE.rglob("*.html")]
PAGES = sorted({str(path.with_suffix("")) for path in FILES} - MADE)
# A reader may look for these words, and the page of the operator has the answer.
SEARCHES = [
    ("padding", "pad"),
    ("nonzero_coordinates", "argwhere"),
    ("nonzero_coordinates", "nonzero"),
    ("element_wise_if", "where"),
    *(("diagonal_matrix1", word) for word in ("tril", "triu", "eye")),
]
for name, operator in OPERATORS.items():
    described = [each.operator for each in operator.descriptors]
    SEARCHES += [(name, word) for word in (name, *described)]
# The first result of the search for a reader's words.
ANSWERS = {word: page for page, words in conf.SEARCHED.items() for word in words}


@pytest.fixture(scope="module")
def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


def resize(browser, width):
    size = {"width": width, "height": HEIGHT}
    metrics = size | {"deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


# Elements of the content that are cut off: wider than their place, or beyond the
# window, without a scroll bar. Rounding may make a box half a pixel wider.
CUT_OFF = """
const found = [];
const describe = e =>
  `<${e.localName}> ${(e.textContent || e.src || "").trim().slice(0, 60)}`;
const scrolls = e => {
  for (; e && e.localName !== "article"; e = e.parentElement)
    if (getComputedStyle(e).overflowX === "auto") return true;
  return false;
};
const page = document.documentElement;
if (page.scrollWidth > window.innerWidth + 1) found.push("the whole page");
const kinds = "table, td, th, pre, img, svg, object, figure, p, li, dt, dd, h1, h2, h3";
for (const e of document.querySelectorAll("article :is(" + kinds + ")")) {
  const box = e.getBoundingClientRect();
  if (box.width === 0) continue;  // in a part that is folded up
  const outside = box.right > window.innerWidth + 1 || box.left < -1;
  const cut = e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 &&
    getComputedStyle(e).display !== "inline";
  if ((outside || cut) && !scrolls(e)) found.push(describe(e));
}
return found;
"""
# Names and numbers in the cells of tables that are broken over two lines.
BROKEN_WORDS = """
const found = [];
for (const cell of document.querySelectorAll("article table.docutils td")) {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent, range = document.createRange();
    for (const word of text.matchAll(/[\\w][\\w.]*/g)) {
      range.setStart(walker.currentNode, word.index);
      range.setEnd(walker.currentNode, word.index + word[0].length);
      if (range.getClientRects().length > 1) found.push(word[0]);
    }
  }
}
return found;
"""
# Pictures that shrink letters of 12 pixels to less than 9.
SMALL_LETTERS = """
return [...document.querySelectorAll("article img[src$='.svg']")]
  .filter(e => !e.closest(".gallery") && e.width < 0.75 * e.naturalWidth)
  .map(e => `${e.src}: ${e.width} of ${e.naturalWidth}`);
"""
# On a narrow screen, pictures and tables that scroll without a note.
SILENT_SCROLLS = """
return [...document.querySelectorAll("article :is(img, table)")]
  .filter(e => e.getBoundingClientRect().width > window.innerWidth)
  .map(e => e.closest(":is(p, figure, .table-wrapper)"))
  .filter(e => !/scrolls/.test(getComputedStyle(e, "::before").content))
  .map(e => e.textContent.slice(0, 60));
"""
OPEN_ALL = "document.querySelectorAll('article details').forEach(e => e.open = true)"
BROKEN_IMAGES = """
return [...document.images].filter(e => !e.complete || e.naturalWidth === 0)
  .map(e => e.src);
"""


# The colour scheme of the pictures. Their style sheets ask for it.
SCHEMES = """
return [...new Set([...document.querySelectorAll("article img")]
  .map(e => getComputedStyle(e).colorScheme))];
"""
# Texts with too little contrast to their background in a theme. The Web Content
# Accessibility Guidelines (level AA) ask for 4.5.
HARD_TO_READ = """
document.body.dataset.theme = arguments[0];
const parse = text => {
  let parts = text.match(/[\\d.]+/g).map(Number);
  if (text.startsWith("color(")) parts = [...parts.slice(0, 3).map(p => 255 * p),
    parts[3] ?? 1];
  return parts.length === 3 ? [...parts, 1] : parts;
};
const over = (top, below) =>
  [0, 1, 2].map(i => top[3] * top[i] + (1 - top[3]) * below[i]).concat(1);
const known = new Map([[null, [255, 255, 255, 1]]]);
const behind = e => {
  if (!known.has(e)) known.set(e,
    over(parse(getComputedStyle(e).backgroundColor), behind(e.parentElement)));
  return known.get(e);
};
const luminance = colour => {
  const [r, g, b] = colour.slice(0, 3).map(c => c / 255).map(
    c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const found = new Set();
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
  const text = walker.currentNode.textContent.trim();
  const e = walker.currentNode.parentElement;
  if (!text || !e.checkVisibility({opacityProperty: true, visibilityProperty: true}) ||
      e.closest("script, style, svg, .headerlink")) continue;
  const below = behind(e), colour = over(parse(getComputedStyle(e).color), below);
  const [dark, light] = [luminance(colour), luminance(below)].sort((a, b) => a - b);
  const contrast = (light + 0.05) / (dark + 0.05);
  if (contrast < 4.5) found.add(
    `${contrast.toFixed(1)}: ${text.slice(0, 40)} (${e.localName}.${e.className})`);
}
return [...found];
"""


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_cut_off_broken_or_hard_to_read(browser, page):
    browser.get(f"{ADDRESS}/{page}.html")
    browser.execute_script(OPEN_ALL)
    for device, width in WIDTHS.items():
        resize(browser, width)
        scripts = [CUT_OFF, BROKEN_WORDS, SMALL_LETTERS]
        if device == "a phone":
            browser.execute_script("mark()")
            scripts.append(SILENT_SCROLLS)
        for script in scripts:
            assert (device, browser.execute_script(script)) == (device, [])
        # A tablet shows what a phone shows.
        for theme in ("light", "dark") if device != "a tablet" else ():
            hard = browser.execute_script(HARD_TO_READ, theme)
            assert (device, theme, hard) == (device, theme, [])
            assert browser.execute_script(SCHEMES) in ([], [theme])
    assert browser.execute_script(BROKEN_IMAGES) == []


# The addresses of the first results, as soon as ten are there or the search has ended.
RESULTS = """
const summary = document.querySelector("#search-results .search-summary");
const links = [...document.querySelectorAll("#search-results li > a")].slice(0, 10);
return (links.length === 10 || /finished|not match/.test(summary?.textContent)) &&
  links.map(e => e.href);
"""


def found(browser, words):
    """The addresses that the site's search finds first, the best first."""
    resize(browser, WIDTHS["a laptop"])
    browser.get(f"{ADDRESS}/search.html?q={words}")
    # By default, it looks again after half a second.
    patient = wait.WebDriverWait(browser, 20, poll_frequency=0.02)
    return patient.until(lambda b: b.execute_script(RESULTS))


@pytest.mark.parametrize(("operator", "word"), SEARCHES)
def test_search_finds_the_operator(browser, operator, word):
    page = f"/operators/{operator}.html"
    assert any(page in result for result in found(browser, word))


@pytest.mark.parametrize("words", ANSWERS)
def test_the_first_result_is_the_answer(browser, words):
    assert f"/{ANSWERS[words]}.html" in found(browser, words)[0]


BROKEN = """<!doctype html><style>img { color-scheme: dark }</style><article>
<p>wide<span style="display: inline-block; width: 3000px">line</span></p>
<table class="docutils" style="width: 9px; table-layout: fixed"><tr>
<td style="overflow-wrap: anywhere; color: #ccc">nonzero</td></tr></table>
<p><img src="operators.svg" width="50"><img src="none.png"></p>
<p><img src="operators.svg"></p>
<script>const mark = () => {}</script></article>"""


def test_each_check_fails_where_it_should(browser, tmp_path):
    """Faults: a check that finds nothing."""
    shutil.copy(ROOT / "docs/operators.svg", tmp_path)
    (tmp_path / "broken.html").write_text(BROKEN)
    browser.get((tmp_path / "broken.html").as_uri())
    resize(browser, WIDTHS["a phone"])
    assert browser.execute_script("return window.innerWidth") == WIDTHS["a phone"]
    scripts = CUT_OFF, BROKEN_WORDS, SMALL_LETTERS, SILENT_SCROLLS, BROKEN_IMAGES
    for script in (*scripts, HARD_TO_READ):
        assert browser.execute_script(script, "light")
    assert len(browser.execute_script(CUT_OFF)) > 2
    assert "nonzero" in browser.execute_script(BROKEN_WORDS)
    assert browser.execute_script(SCHEMES) == ["dark"]
