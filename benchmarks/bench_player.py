"""How fast the tile player steps, and how much data it needs: `python benchmarks/bench_player.py`.

For 16, 64, 256 and 4096 tiles, the exact player and one with a wrong learner's function: bytes of
the output without the script, which is the same for all, and the milliseconds from a key event to
the changed page, layout included: the fastest, the median and the 95th percentile of 300 steps,
each as the median of 3 runs. On a busy machine only the fastest says much. Needs Chromium.
The table goes to RESULTS.md.
"""

from __future__ import annotations

import math
import os
import platform
import shutil
import statistics
import tempfile
from pathlib import Path
from typing import Any

import torch
from playwright.sync_api import Page, sync_playwright

import flashcourse
from flashcourse.views.player import Player, script

SETTINGS: dict[int, dict[str, Any]] = {
    16: {"seq_len": 8, "dim": 4, "block_size": 2},
    64: {"seq_len": 64, "dim": 64, "block_size": 8},
    256: {"seq_len": 32, "dim": 8, "block_size": 2},
    4096: {"seq_len": 512, "dim": 16, "block_size": 8},
}
RUNS = 3
RESULTS = Path(__file__).with_name("RESULTS.md")
BEGIN, END = "<!-- player: begin -->", "<!-- player: end -->"
MEASURE = """
() => {
  const host = document.querySelector("[data-flashcourse-player]");
  const section = host.shadowRoot.querySelector("section");
  const times = [];
  const press = (key) => {
    section.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
    section.getBoundingClientRect();
  };
  while (times.length < 300) {
    const before = host.dataset.step, start = performance.now();
    press("ArrowRight");
    const took = performance.now() - start;
    if (host.dataset.step === before) press("Home");
    else times.push(took);
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
    """Milliseconds of each step, sorted."""
    path = folder / "player.html"
    path.write_text(f"<!doctype html><meta charset=utf-8>{player.html()}", "utf-8")
    page.goto(path.as_uri())
    page.wait_for_selector("[data-flashcourse-player][data-ready=true]")
    return sorted(page.evaluate(MEASURE))


def three_numbers(times: list[float]) -> tuple[float, float, float]:
    """The fastest, the median, the 95th percentile of sorted times."""
    return times[0], statistics.median(times), times[int(0.95 * (len(times) - 1))]


def measure(page: Page, folder: Path) -> str:
    """The table's lines."""
    lines = ["| tiles | function | data, bytes | fastest, ms | median, ms | 95 %, ms |"]
    lines += ["|---|---|---|---|---|---|"]
    for tiles, options in SETTINGS.items():
        for function in (None, forgets_alpha):
            player = flashcourse.step(function, **options)
            runs = [three_numbers(step_times(page, player, folder)) for _ in range(RUNS)]
            numbers = (f"{statistics.median(each):.1f}" for each in zip(*runs, strict=True))
            size = len(player.element().encode())
            name = "wrong" if function else "none: exact"
            lines.append(f"| {tiles} | {name} | {size:,} | {' | '.join(numbers)} |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def store(text: str) -> None:
    """Put the text in its place in RESULTS.md."""
    old = RESULTS.read_text("utf-8") if RESULTS.exists() else "# Results\n"
    before, _, rest = old.partition(BEGIN)
    after = rest.partition(END)[2] if rest else "\n"
    gap = "" if rest else "\n"
    RESULTS.write_text(f"{before}{gap}{BEGIN}\n{text}\n{END}{after}", "utf-8")


def main() -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        raise SystemExit("needs Chromium: apt-get install chromium")
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        table = measure(page, Path(folder))
        machine = f"{os.cpu_count()} cores ({platform.machine()}), Chromium {browser.version}"
        browser.close()
    load = f"load {before:.1f} before, {os.getloadavg()[0]:.1f} after"
    store(
        "## A step of the tile player\n\n"
        f"{machine}; {load}. From key event to changed page, layout included: 300 steps, median of "
        f"{RUNS} runs. The script, {len(script()):,} bytes, is the same for all.\n\n{table}"
    )


if __name__ == "__main__":
    main()
