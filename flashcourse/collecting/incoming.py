"""Find what was handed in: files, folders, archives within archives, and saved e-mails.

Archives are read in memory and never unpacked to the disk, so no entry can land elsewhere.
"""

from __future__ import annotations

import contextlib
import email
import email.policy
import email.utils
import hashlib
import io
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path, PurePosixPath

from flashcourse.collecting.notes import Refused

MAX_FILE = 64 * 2**20  # bytes of one handed-in file
MAX_DEPTH = 4  # archives within archives
# What nothing but repeated output, or a bomb, packs so well: bytes from which on it is asked, and
# how many times smaller the packed entry is.
SUSPECT, TOO_DENSE = 8 * 2**20, 100
NOISE = {
    "__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini", "timestamp.txt",
    ".git", ".venv", "venv", "node_modules", "__pycache__",
}  # fmt: skip
AUTOSAVES = ".ipynb_checkpoints"
OTHER_ARCHIVES = (".rar", ".7z", ".tar", ".gz", ".tgz", ".xz")
BROKEN = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error,
    EOFError, OSError, RuntimeError, NotImplementedError, ValueError,
)  # fmt: skip


@dataclass(frozen=True)
class Incoming:
    """One file as it came in.

    path: where it lay, with '/' also between an archive and what is in it; below a folder that
    was named, so that a folder's own name says nothing. data: its bytes, b"" if they were not read.
    date: when it was saved or sent, if something says so. sent: whether `date` is the time of
    handing in and not just a file's date. named: whether the file itself was named by the caller.
    refused: why it can't be read, or None.
    """

    path: str
    data: bytes
    date: datetime | None = None
    sent: bool = False
    named: bool = False
    refused: Refused | None = None

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name

    @cached_property
    def mark(self) -> str:
        """Tells files by their bytes; '' if there are none."""
        return hashlib.sha256(self.data).hexdigest()[:16] if self.data else ""


def find_incoming(paths: list[Path]) -> Iterator[Incoming]:
    """Every file in `paths`, in the order of their names. Raises FileNotFoundError."""
    for path in paths:
        if not path.exists():
            raise FileNotFoundError(f"no such file or folder: {path}")
        if path.is_dir():
            for file in sorted(p for p in path.rglob("*") if p.is_symlink() or p.is_file()):
                yield from read_file(file, readable_path(file.relative_to(path)), named=False)
        else:
            yield from read_file(path, readable_path(Path(path.name)), named=True)


def readable_path(path: Path) -> str:
    return "/".join(readable(os.fsencode(part)) for part in path.parts)


def readable(raw: bytes) -> str:
    """A name in whatever encoding it was written: `unzip` leaves a Chinese Windows's in GBK."""
    for encoding in ("utf-8", "gb18030"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return raw.decode("latin-1")


def read_file(file: Path, path: str, named: bool) -> Iterator[Incoming]:
    if is_noise(path):
        return
    if file.is_symlink() and not named:
        yield Incoming(path, b"", refused=a_link())
        return
    date = datetime.fromtimestamp(file.stat().st_mtime, timezone.utc)
    item = Incoming(path, b"", date, named=named)
    if file.stat().st_size > MAX_FILE and not path.lower().endswith(".zip"):
        yield replace(item, refused=too_large(file.stat().st_size))
        return
    try:
        item = replace(item, data=file.read_bytes())
    except OSError as error:
        yield replace(item, refused=unreadable(error))
        return
    yield from open_up(item, depth=0)


def open_up(item: Incoming, depth: int) -> Iterator[Incoming]:
    """The file itself, or what is in it if it is an archive or an e-mail."""
    suffix = PurePosixPath(item.path).suffix.lower()
    if AUTOSAVES in PurePosixPath(item.path).parts:
        yield replace(item, refused=an_autosave())
    elif suffix == ".zip":
        yield from open_zip(item, depth)
    elif suffix == ".eml":
        yield from open_email(item, depth)
    elif suffix in OTHER_ARCHIVES:
        yield replace(
            item,
            refused=Refused(
                f"is an archive of a kind that is not read ({suffix}): unpack it and collect again",
                f"是读不了的压缩格式（{suffix}）：请先解压，再重新收取",
            ),
        )
    else:
        yield item


def open_zip(item: Incoming, depth: int) -> Iterator[Incoming]:
    try:
        if depth >= MAX_DEPTH:
            raise Refused("holds too many archives within archives", "压缩包嵌套太深")
        archive = zipfile.ZipFile(io.BytesIO(item.data))
        entries = sorted((entry_name(e), e) for e in archive.infolist() if not e.is_dir())
    except Refused as refused:
        yield replace(item, data=b"", refused=refused)
        return
    except BROKEN as error:
        yield replace(item, data=b"", refused=broken_archive(error))
        return
    found = False
    for name, entry in entries:
        path = f"{item.path}/{name}"
        if is_noise(path):
            continue
        found = True
        inner = Incoming(path, b"", entry_date(entry), item.sent)
        try:
            inner = replace(inner, data=read_entry(archive, entry))
        except Refused as refused:
            yield replace(inner, refused=refused)
            continue
        yield from open_up(inner, depth + 1)
    if not found:
        nothing = Refused("has no file in it: ask for it again", "里面没有文件：请学生重新提交")
        yield replace(item, data=b"", refused=nothing)


def read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """The entry's bytes. Raises Refused, for what is too large before it is unpacked."""
    dense = entry.file_size > max(SUSPECT, TOO_DENSE * entry.compress_size)
    if entry.file_size > MAX_FILE or dense:
        raise too_large(entry.file_size)
    if entry.flag_bits & 0x1:
        raise Refused(
            "is locked with a password: ask for the notebook itself",
            "设有密码，打不开：请学生直接提交 notebook",
        )
    try:
        return archive.read(entry)
    except BROKEN as error:
        raise broken_archive(error) from error


def entry_name(entry: zipfile.ZipInfo) -> str:
    """The entry's name; archives made on a Chinese Windows have GBK names without saying so."""
    if entry.flag_bits & 0x800:
        return entry.filename
    return readable(entry.filename.encode("cp437", "replace"))


def entry_date(entry: zipfile.ZipInfo) -> datetime | None:
    try:
        return datetime(*entry.date_time, tzinfo=timezone.utc)
    except ValueError:
        return None


def open_email(item: Incoming, depth: int) -> Iterator[Incoming]:
    """The attachments of a saved e-mail; the sender's address becomes a part of the path."""
    message = email.message_from_bytes(item.data, policy=email.policy.default)
    _, address = email.utils.parseaddr(str(message["From"] or ""))
    date = item.date
    with contextlib.suppress(TypeError, ValueError):
        date = email.utils.parsedate_to_datetime(str(message["Date"]))
    found = False
    for part in message.walk():
        if part.is_multipart() or not part.get_filename():
            continue
        found = True
        data = part.get_payload(decode=True)
        name = readable(str(part.get_filename()).encode("utf-8", "surrogateescape"))
        path = f"{item.path}/{address}/{name}"
        inner = Incoming(path, data if isinstance(data, bytes) else b"", date, sent=True)
        yield from open_up(inner, depth + 1)
    if not found:
        no_file = Refused("is an e-mail with no file attached", "是一封没有附件的邮件")
        yield replace(item, data=b"", refused=no_file)


def is_noise(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return any(part in NOISE or part.startswith("._") for part in parts)


def unreadable(error: OSError) -> Refused:
    return Refused(
        f"can't be read ({error.strerror}): look at the file's permissions",
        f"读不了（{error.strerror}）：请检查文件权限",
    )


def a_link() -> Refused:
    return Refused(
        "is a link to another file, which is not followed: put the file itself there",
        "是指向别处的链接，不会打开：请换成文件本身",
    )


def an_autosave() -> Refused:
    return Refused(
        "is Jupyter's autosave copy, perhaps an old one: ask for the notebook itself",
        "是 Jupyter 自动保存的副本，可能不是最新的：请学生提交 notebook 本身",
        aside=True,
    )


def too_large(size: int) -> Refused:
    mib = f"{size / 2**20:.0f} MiB"
    return Refused(
        f"is too large ({mib}): ask the student to clear the outputs and hand in again",
        f"太大（{mib}）：请学生清除输出后重新提交",
    )


def broken_archive(error: Exception) -> Refused:
    return Refused(
        f"can't be unpacked ({error}): ask for the notebook itself",
        f"解压失败（{error}）：请学生直接提交 notebook",
    )
