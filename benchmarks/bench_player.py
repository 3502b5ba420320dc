"""How fast the tile player steps, and how much data it needs: `python benchmarks/bench_player.py`.

For 16, 64, 256 and 4096 tiles, the exact player and one with a wrong learner's function: bytes of
the output without the script, which is the same for all, and the milliseconds from a key event to
the changed page, layout included (fastest, median and 95th percentile of up to 300 steps; on a busy
machine only the fastest says much). Needs Chromium.
"""

from __future__ import annotations

import math
import platform
import shutil
import statistics
import tempfile
from pathlib import Path

import torch
from playwright.sync_api import Page, sync_playwright

import flashcourse
from flashcourse.views.player import Player, script

SETTINGS = {
    16: {"seq_len": 8, "dim": 4, "block_size": 2},
    64: {"seq_len": 64, "dim": 64, "block_size": 8},
    256: {"seq_len": 32, "dim": 8, "block_size": 2},
    4096: {"seq_len": 512, "dim": 16, "block_size": 8},
}
MEASURE = """
() => {
  const host = document.querySelector("[data-flashcourse-player]");
  const section = host.shadowRoot.querySelector("section");
  const times = [];
  for (let n = 0; n < 300; n++) {
    const before = host.dataset.step, start = performance.now();
    section.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
    section.getBoundingClientRect();
    const took = performance.now() - start;
    if (host.dataset.step === before) break;
    times.push(took);
  }
  return times;
}
"""


def forgets_alpha(q, k, v, block_size=2):
    """An online softmax whose l is never corrected: wrong at almost every tile."""
    out = torch.zeros_like(v)
    for i in range(0, q.shape[0], block_size):
        q_block = q[i : i + block_size] / math.sqrt(q.shape[1])
        m_i = torch.full((q_block.shape[0], 1), -math.inf)
        l_i, out_i = torch.zeros_like(m_i), torch.zeros_like(q_block)
        for j in range(0, k.shape[0], block_size):
            S_ij = q_block @ k[j : j + block_size].T
            m_new = torch.maximum(m_i, S_ij.max(dim=-1, keepdim=True)[0])
            P_ij = torch.exp(S_ij - m_new)
            l_new = l_i + P_ij.sum(dim=-1, keepdim=True)
            out_i = (out_i * l_i * torch.exp(m_i - m_new) + P_ij @ v[j : j + block_size]) / l_new
            m_i, l_i = m_new, l_new
        out[i : i + block_size] = out_i
    return out


def step_times(page: Page, player: Player, folder: Path) -> list[float]:
    path = folder / "player.html"
    path.write_text(f"<!doctype html><meta charset=utf-8>{player.html()}", "utf-8")
    page.goto(path.as_uri())
    page.wait_for_selector("[data-flashcourse-player][data-ready=true]")
    return page.evaluate(MEASURE)


def main() -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("needs Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        print(f"Chromium {browser.version}, {platform.machine()}; script {len(script()):,} bytes")
        print(
            f"{'tiles':>6} {'function':>9} {'data, bytes':>12} {'min, ms':>8}"
            f" {'median':>7} {'95 %':>7}"
        )
        for tiles, options in SETTINGS.items():
            for function in (None, forgets_alpha):
                player = flashcourse.step(function, **options)
                times = sorted(step_times(page, player, Path(folder)))
                print(
                    f"{tiles:>6} {'wrong' if function else 'exact':>9} "
                    f"{len(player.element().encode()):>12,} {times[0]:>8.2f} "
                    f"{statistics.median(times):>7.2f} {times[int(0.95 * (len(times) - 1))]:>7.2f}"
                )
        browser.close()


if __name__ == "__main__":
    main()
