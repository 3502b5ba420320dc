"""The tile player in a notebook that was exported to HTML: from disk, no kernel, no network."""

import nbformat
import pytest
import torch
from nbconvert import HTMLExporter
from playwright.sync_api import Browser, Page, expect
from test_views_player import forgets_alpha

import flashcourse
from browser.players import PLAYER, check_stepping, expect_state, ready
from flashcourse import costs
from flashcourse.attention import state_after
from flashcourse.views.inputs import make_inputs


def export(folder, *players) -> str:
    """The address of an exported notebook whose cells show these players."""
    cells = []
    for player in players:
        output = nbformat.v4.new_output("execute_result", {"text/html": player.html()})
        output.execution_count = 1
        cells.append(nbformat.v4.new_code_cell("flashcourse.step()", outputs=[output]))
    body, _ = HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=cells))
    (folder / "exported.html").write_text(body, "utf-8")
    return (folder / "exported.html").as_uri()


def open_offline(page: Page, address: str) -> None:
    page.route(
        "**/*",
        lambda route: route.continue_() if route.request.url.startswith("file:") else route.abort(),
    )
    page.goto(address, wait_until="domcontentloaded")


def test_an_exported_notebook_steps_offline_and_shows_the_closed_form(page, tmp_path):
    open_offline(page, export(tmp_path, flashcourse.step()))
    check_stepping(page, ready(page))


def test_without_script_a_picture_of_the_last_state_remains(browser: Browser, tmp_path):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    open_offline(page, export(tmp_path, flashcourse.step()))
    picture = page.locator(f"{PLAYER} img")
    expect(picture).to_be_visible()
    assert picture.bounding_box()["width"] > 300
    assert "q7: m " in picture.get_attribute("alt")
    context.close()


def test_each_tile_is_the_same_in_both_loop_orders_and_the_traffic_is_the_papers(page, tmp_path):
    open_offline(page, export(tmp_path, flashcourse.step(start=9)))
    player = ready(page)
    expect_state(player, row=4, keys=4)
    player.locator("[data-set=loop][data-to=kv]").click()
    expect(player).to_have_attribute("data-tile", "4,2")  # the same tile, at another step
    expect(player).to_have_attribute("data-step", "6")
    expect_state(player, row=4, keys=4)
    traffic = player.locator("[data-name=traffic]")
    player.locator("[data-go=last]").click()
    assert int(traffic.inner_text()) == costs.count_flash1(8, 4, 2, 2).total
    player.locator("[data-set=loop][data-to=q]").click()  # the last tile is the last in both
    assert int(traffic.inner_text()) == costs.count_flash2(8, 4, 2, 2).total


def test_deferred_division_keeps_o_times_l_until_the_end(page, tmp_path):
    open_offline(page, export(tmp_path, flashcourse.step(start=2)))
    player = ready(page)
    value = lambda name: player.locator(f'.state [data-name="{name}"][data-row="0"]').inner_text()
    floats = lambda words: [float(x) for x in words.replace("−", "-").strip("[]").split(",")]
    divided, l = floats(value("O1")), floats(value("l1"))[0]
    player.locator("[data-set=divide][data-to=end]").click()
    assert floats(value("O1")) == pytest.approx([x * l for x in divided], abs=6e-3)


def test_the_keyboard_alone_plays_and_the_summary_is_spoken(page, tmp_path):
    open_offline(page, export(tmp_path, flashcourse.step()))
    player = ready(page)
    player.locator("section").focus()
    page.keyboard.press("ArrowRight")
    expect(player.locator("[aria-live]")).to_contain_text("tile (i=0, j=2), step 2 of 16")
    player.locator("select").select_option("16")
    player.locator("section").focus()
    page.keyboard.press("Space")
    expect(player).to_have_attribute("data-step", "15")
    page.keyboard.press("Home")
    expect(player).to_have_attribute("data-step", "0")


def test_the_learners_mistake_is_seen_at_its_tile_beside_the_right_number(page, tmp_path):
    player = flashcourse.step(forgets_alpha, inputs="rising")
    open_offline(page, export(tmp_path, player))
    shown = ready(page)
    shown.locator("[data-go=difference]").click()
    expect(shown).to_have_attribute("data-tile", "0,2")
    q, k, v = make_inputs(kind="rising")
    before, after = (state_after(q[:1], k, v, n) for n in (2, 4))
    alpha = torch.exp(before.m - after.m)
    wrong = before.l + after.l - alpha * before.l  # the sum that was not corrected
    l_new = shown.locator('.state .val.bad:has([data-name="l1"][data-row="0"])')
    expect(l_new).to_contain_text(f"{wrong.item():.3f}")
    expect(l_new).to_contain_text(f"✓ {after.l.item():.3f}")
    expect(shown.locator(".laws code").last).to_contain_text("out_i = (out_i * l_i")
    shown.locator("[data-set=own][data-to=exact]").click()
    expect(shown.locator(".state .bad")).to_have_count(0)


def test_4096_tiles_play_without_their_numbers(page, tmp_path):
    large = flashcourse.step(seq_len=128, block_size=2)
    open_offline(page, export(tmp_path, large))
    player = ready(page)
    player.locator("section").focus()
    page.keyboard.press("End")
    expect(player).to_have_attribute("data-tile", "126,126")
    expect(player.locator("[data-name=m1]")).to_have_count(0)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_nothing_is_wider_than_a_page_of_400_pixels(page, tmp_path, lang):
    page.set_viewport_size({"width": 400, "height": 900})
    players = [flashcourse.step(lang=lang), flashcourse.step(dim=8, block_size=8, lang=lang)]
    (tmp_path / "narrow.html").write_text(
        "<!doctype html><meta charset=utf-8>" + "".join(p.html() for p in players), "utf-8"
    )
    open_offline(page, (tmp_path / "narrow.html").as_uri())
    for nth in (0, 1):
        ready(page, nth)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    widest = page.evaluate(
        "Math.max(...[...document.querySelectorAll('[data-flashcourse-player]')].map(p =>"
        " p.shadowRoot.querySelector('section').scrollWidth - p.clientWidth))"
    )
    assert widest <= 0


def test_64_tiles_take_less_than_60_kb():
    for player in (
        flashcourse.step(seq_len=16),
        flashcourse.step(seq_len=64, dim=64, block_size=8),
    ):
        assert len(player.element().encode()) < 60_000
