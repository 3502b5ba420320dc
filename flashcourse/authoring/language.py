'''Keep one language of a code cell.

Three forms, each written side by side in the lesson:

    # en: the running maximum          whole-line comments
    # zh: 行最大值
    """en: Divide once.                lines of a docstring; its quotes may stand on them
    zh: 只除一次。"""
    x = 1  # en: rows | zh: 行         a comment at the end of a line
    print(tr("done", "完成"))          a string
'''

from __future__ import annotations

import ast
import re

LINE = re.compile(
    r"^(?P<indent>\s*)(?P<quote>\"\"\")?(?P<mark>#\s*)?(?P<lang>en|zh): ?"
    r"(?P<rest>.*?)(?P<end>\"\"\")?$"
)
LINE_END = re.compile(r"^(?P<code>.*\S)(?P<gap>\s+# )en: (?P<en>.*?) \| zh: (?P<zh>.*)$")


def keep_language(code: str, lang: str) -> str:
    """`code` with what the other language says left out, and the language marks with it.

    Raises ValueError for a `tr` call that is not tr("…", "…").
    """
    for step in (keep_strings, keep_lines, keep_line_ends):
        code = step(code, lang)
    return code


def keep_lines(code: str, lang: str) -> str:
    """Keep the `# en:` or the `# zh:` lines, without their mark."""
    kept: list[str] = []
    quote = ""  # opens a docstring on a line that was left out
    for line in code.split("\n"):
        match = LINE.match(line)
        if not match:
            kept.append(line)
            continue
        quote += match["quote"] or ""
        end = match["end"] or ""
        if match["lang"] == lang:
            text = f"{match['indent']}{quote}{match['mark'] or ''}{match['rest']}".rstrip()
            kept.append(text + end)
            quote = ""
        elif end:
            kept[-1] += end
    return "\n".join(kept)


def keep_line_ends(code: str, lang: str) -> str:
    """Keep one half of `# en: … | zh: …` at the end of a line."""
    lines = []
    for line in code.split("\n"):
        match = LINE_END.match(line)
        lines.append(f"{match['code']}{match['gap']}{match[lang].strip()}" if match else line)
    return "\n".join(lines)


def keep_strings(code: str, lang: str) -> str:
    """Replace every tr(en, zh) by the literal of one language."""
    if "tr(" not in code:
        return code
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno} is no Python: {error.msg}") from error
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and is_tr(node)]
    lines = code.encode().split(b"\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    raw = code.encode()
    for call in sorted(calls, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        begin = starts[call.lineno - 1] + call.col_offset
        end = starts[(call.end_lineno or 0) - 1] + (call.end_col_offset or 0)
        raw = raw[:begin] + chosen_literal(code, call, lang).encode() + raw[end:]
    return raw.decode()


def is_tr(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "tr"


def chosen_literal(code: str, call: ast.Call, lang: str) -> str:
    """The source text of the `lang` argument of one tr call."""
    is_text = [
        isinstance(arg, ast.JoinedStr)
        or (isinstance(arg, ast.Constant) and isinstance(arg.value, str))
        for arg in call.args
    ]
    if is_text != [True, True] or call.keywords:
        raise ValueError(f'line {call.lineno}: write tr("English", "中文"), two string literals')
    text = ast.get_source_segment(code, call.args[0 if lang == "en" else 1]) or ""
    return f"({text})" if "\n" in text and not text.startswith(('"""', "'''")) else text
