"""The points of tiling: no tensor over all keys, tiles as large as block_size says."""

from __future__ import annotations

from dataclasses import replace

from flashcourse.checks import cuts as cut
from flashcourse.checks.forward_evidence import Evidence
from flashcourse.checks.forward_parts import ALL_KEYS, NO_TILES, about, blocked_part
from flashcourse.checks.forward_problems import KEYS, NARROW, WIDE
from flashcourse.checks.forward_run import Run
from flashcourse.checks.forward_shown import widest_tile
from flashcourse.checks.marks import Finding
from flashcourse.checks.probe import Part, finding_of
from flashcourse.words import Text


def tiling_part(evidence: Evidence) -> Part:
    passed = Text(
        "Works tile by tile, as large as block_size says.", "逐块计算，块的大小由 block_size 决定。"
    )
    part = Part(10, passed)
    blocked = blocked_part(evidence, part)
    if blocked is not None:
        return blocked
    narrow, wide = evidence.tiled[NARROW], evidence.tiled[WIDE]
    for run in (narrow, wide):
        if run.error is not None:
            error = run.error
            return replace(part, finding=finding_of(error), status=error.kind)
    finding = _too_large(narrow) or _too_wide(evidence, narrow) or _too_wide(evidence, wide)
    finding = finding or _ignored(narrow, wide) or _uncut(evidence)
    return replace(part, finding=finding)


def _too_large(run: Run) -> Finding | None:
    """A tensor as large as the scores, or a strip of them over all keys."""
    rows, block = run.problem.q.shape[0], run.problem.block
    for made in run.record.tensors:
        strip = len(made.shape) >= 2 and made.shape[-1] == KEYS and made.elements >= KEYS * block
        if made.elements >= rows * KEYS or strip:
            size = " × ".join(map(str, made.shape))
            text = Text(
                f"With {KEYS} keys and block_size {block}, your code makes a {size} tensor.",
                f"{KEYS} 个 key、block_size 为 {block} 时，你的代码生成了 {size} 的张量。",
            )
            return about("everything-at-once", text, made.line)
    return None


def _too_wide(evidence: Evidence, run: Run) -> Finding | None:
    widest = max((made.exponents or 0 for made in run.record.tensors), default=0)
    if widest < KEYS and not evidence.right_numbers:
        # With wrong scores, different exponents do not count keys. The tiles' widths do.
        scores = (tile.values.get("S_ij") for tile in run.record.tiles if evidence.named)
        widest = max((S.shape[-1] for S in scores if S is not None and S.ndim), default=0)
    if widest <= widest_tile(run.problem.block):
        return None
    if widest >= KEYS:
        return about("everything-at-once", ALL_KEYS)
    block = run.problem.block
    text = Text(
        f"One tile holds {widest} keys, although block_size is {block}.",
        f"block_size 是 {block}，一个块却装了 {widest} 个 key。",
    )
    return about("block-size-ignored", text)


def _ignored(narrow: Run, wide: Run) -> Finding | None:
    """Neither the tensors nor the number of tiles differ, and block_size is not even read.

    It may be read without a trace: one key after the other, or arrays of NumPy's.
    """
    if wide.record.reads_block_size:
        return None
    shapes = [[made.shape for made in run.record.tensors] for run in (narrow, wide)]
    if shapes[0] != shapes[1] or len(narrow.record.tiles) != len(wide.record.tiles):
        return None
    text = Text(
        f"block_size {NARROW} and block_size {WIDE} make the very same tensors in your code.",
        f"block_size 为 {NARROW} 和为 {WIDE} 时，你的代码生成的张量完全一样。",
    )
    return about("block-size-ignored", text)


def _uncut(evidence: Evidence) -> Finding | None:
    """Results that do not come of tiles, whatever the record shows.

    Tiles whose every value has the skeleton's name and is right need no other proof.
    """
    if evidence.online and evidence.shown.cuts.before and not evidence.shown.cuts.missing:
        return None
    if evidence.named and not evidence.faults and {2, 3, 4, 5, 6} <= evidence.seen:
        return None
    if not evidence.right_across_tiles:
        return None if evidence.named or evidence.shown.tiles else Finding(NO_TILES)
    if not evidence.shown.rescales:  # several passes over the tiles, or no maximum, do without
        return None if evidence.shown.all_recorded else evidence.shown.cuts.finding
    if not evidence.shown.cuts.before or not evidence.shown.cuts.missing:
        return None
    key = evidence.shown.cuts.missing[0]
    text = Text(
        f"With {cut.KEYS} keys and block_size {cut.BLOCK}, none of your tiles begins at key {key}.",
        f"{cut.KEYS} 个 key、block_size 为 {cut.BLOCK} 时，你没有一个块从第 {key} 个 key 开始。",
    )
    return about("block-size-ignored", text)
