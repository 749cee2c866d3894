"""Make text from files safe to show or use: on a terminal, in Markdown, HTML and C code, and as the name of a file.

Names of robots, joints and files are written by strangers and may hold any characters. Whatever writes them, an error,
a report or generated C code, passes them through one of these functions.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from html import escape

LONGEST_FILE_NAME = 60
"""Most characters of a name that go into the name of a file (convention: at four bytes each, 255 bytes leave room for a
suffix)."""
LONGEST_IDENTIFIER = 40
"""Most characters of a C identifier (convention: C99 guarantees 63 significant ones, and the name of a function is
appended)."""

# names that `c_identifier` avoids, in three groups; `_RESERVED` says why
_WORDS = """
    alignas alignof and and_eq asm atomic_cancel atomic_commit atomic_noexcept auto bitand bitor bool break
    case catch char char16_t char32_t char8_t class co_await co_return co_yield compl complex concept const
    const_cast consteval constexpr constinit continue decltype default delete do double dynamic_cast else enum
    explicit export extern false float for friend goto if imaginary inline int linux long main mutable
    namespace new noexcept noreturn not not_eq nullptr operator or or_eq private protected public reflexpr
    register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast
    std struct switch synchronized template this thread_local throw true try typedef typeid typename typeof
    typeof_unqual unix union unsigned using virtual void volatile wchar_t while xor xor_eq aux con nul prn
    com1 com2 com3 com4 com5 com6 com7 com8 com9 lpt1 lpt2 lpt3 lpt4 lpt5 lpt6 lpt7 lpt8 lpt9
"""
_HEADERS = """
    aio alloca argp argz arpa assert byteswap complex conio cpio crypt ctype dirent dlfcn elf endian envz err
    errno error execinfo fcntl features fenv float fmtmsg fnmatch fstab fts ftw getopt glob grp iconv ieee754 ifaddrs
    inttypes io iso646 langinfo libgen limits link locale malloc math mcheck memory mntent monetary netdb obstack paths
    poll printf process pthread pty pwd regex resolv sched search semaphore setjmp sgtty shadow signal spawn stdalign
    stdarg stdatomic stdbit stdbool stdckdint stddef stdint stdio stdlib stdnoreturn string strings stropts syscall
    sysexits syslog tar termio termios tgmath thread_db threads time uchar ucontext unistd utime utmp utmpx values wait
    wchar wctype windows winsock wordexp
"""
_TARGETS = """
    all all_build clean continuous depend edit_cache experimental help install list_install_components nightly
    nightlymemorycheck package package_source preinstall rebuild_cache run_tests test uninstall zero_check
"""
_RESERVED = frozenset(f"{_WORDS} {_HEADERS} {_TARGETS}".split())
"""Keywords of C and C++, macros of common compilers, and names that no file may have on Windows (_WORDS); headers
of the system, which a generated file of that name would hide (_HEADERS); and targets that CMake reserves (_TARGETS)."""


def visible_text(text: str) -> str:
    r"""Escape, as JSON does, every character that would control a terminal, except the end of a line.

    These are control characters, characters that change the direction of writing, other ends of lines than ``\n``, and
    halves of surrogate pairs.

    Example:
        >>> dynid.safe_text.visible_text("joint\x1b[2J")
        'joint\\u001b[2J'
    """
    if text.replace("\n", "").isprintable():
        return text
    controls = {c for c in set(text) if c != "\n" and not c.isprintable() and _is_control(c)}
    return text.translate({ord(c): _escape(c) for c in controls}) if controls else text


def one_line(text: str) -> str:
    """Escape like `visible_text`, the ends of lines as well: no name can look like a line of dynid's own."""
    return visible_text(text).replace("\n", "\\n")


def _is_control(character: str) -> bool:
    """Whether a character is of the Unicode categories C (control, format, surrogate), Zl or Zp (ends of lines)."""
    category = unicodedata.category(character)
    return category.startswith("C") or category in ("Zl", "Zp")


def _escape(character: str) -> str:
    """Write a character by its number, as JSON and Python do."""
    number = ord(character)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def html_text(text: str) -> str:
    """Escape a text for HTML, so that it holds no tag and no entity."""
    return escape(visible_text(text))


def markdown_text(text: str) -> str:
    r"""Escape a text for one line of Markdown, so that it holds no raw HTML, link, code or table cell.

    Example:
        >>> dynid.safe_text.markdown_text("<img src=x> [a](b)")
        '&lt;img src=x&gt; \\[a](b)'
    """
    line = " ".join(visible_text(text).split())
    plain = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`\[|])", r"\\\1", plain)


def safe_name(text: str) -> str:
    """Make part of a file's name from any text: letters, digits, ``_ . -``; not hidden, not long, not like an option.

    Example:
        >>> dynid.safe_text.safe_name("; touch PWN;")
        'touch_PWN'
    """
    kept = re.sub(r"[^\w.-]+", "_", visible_text(text)).strip("_.- ")
    return kept[:LONGEST_FILE_NAME].rstrip("_.- ") or "robot"


def c_identifier(text: str, fallback: str = "robot") -> str:
    """Make an identifier that resembles the text: lower-case ASCII, at most 40 characters, no reserved word.

    Args:
        text: Any text.
        fallback: The name for a text without any letter or digit; also put before a leading digit.
    """
    ascii_only = "".join(character if character.isascii() else "_" for character in text).lower()
    plain = re.sub(r"[^a-z0-9]+", "_", ascii_only).strip("_")
    if not plain or plain[0].isdigit():
        plain = f"{fallback}_{plain}".strip("_")
    if len(plain) > LONGEST_IDENTIFIER:
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]  # keeps long names different
        plain = f"{plain[: LONGEST_IDENTIFIER - 9].rstrip('_')}_{digest}"
    return f"{plain}_{fallback}" if plain in _RESERVED else plain


def unique_identifiers(texts: Iterable[str], fallback: str) -> list[str]:
    """Make one identifier per text, in the order of the texts and all different; a number is added to equal ones.

    A text that is an identifier already keeps its name, because such texts get their names first.
    """
    pairs = [(c_identifier(text, fallback), text) for text in texts]
    place_of: dict[str, int] = {}  # identifier -> place of its text
    # False sorts before True: texts that their identifier equals come first
    for place in sorted(range(len(pairs)), key=lambda place: pairs[place][0] != pairs[place][1]):
        name = pairs[place][0]
        number = 2
        while name in place_of:
            name = f"{pairs[place][0]}_{number}"
            number += 1
        place_of[name] = place
    return sorted(place_of, key=place_of.__getitem__)


def c_comment(text: str, longest: int = 60) -> str:
    """Make text safe for a comment in C: ASCII without ``*``, ``/`` and backslash, which end comments or join lines."""
    safe = re.sub(r"[^A-Za-z0-9 _.,:;+()\[\]=<>^-]", "_", text)
    return safe if len(safe) <= longest else f"{safe[: longest - 3]}..."
