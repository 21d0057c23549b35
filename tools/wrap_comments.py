#!/usr/bin/env python3
"""wrap_comments.py [--check] PATH... - wraps the block comments of C and CUDA files at 100 columns.

clang-format would also reflow tables and code samples, so its ReflowComments stays off and this tool does the rest.
It fills only paragraphs that hold a line beyond the limit; a paragraph ends at an empty line, a list item or a
verbatim line. Verbatim are lines indented by four or more (code samples, tables). A line `name  text` (two spaces)
starts a definition whose further lines hang under its text. A ruler `/* ---- title ---- */` ends at the limit.

A comment behind code belongs to a line of code, which may have 120 columns; beyond them it moves above its line.
--check changes nothing and lists the lines that are too long (exit 1). Paths are files or folders.
SPDX-License-Identifier: MIT"""
import pathlib
import re
import sys

COMMENT_COLUMNS = 100
CODE_COLUMNS = 120
SUFFIXES = {".c", ".h", ".cu", ".cuh"}
UNBROKEN = re.compile(r"SPDX-License-Identifier: MIT|`[^`]{1,60}`")
GLUE = "\0"  # a space at which no line is broken

TOKEN = re.compile(r"""(?P<block>/\*.*?\*/)|//[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)
RULER = re.compile(r"/\* -{4} (.*?) -* ?\*/")
DEFINITION = re.compile(r"( {0,3}\S+(?: \S+)* {2,})\S")
ITEM = re.compile(r"( {0,3}(?:-|\d+\.|\([a-z0-9]\)) +)\S")


def block_comments(text):
    """Yields (start, end) of every /* ... */ outside of strings."""
    for match in TOKEN.finditer(text):
        if match.group("block"):
            yield match.span()


def fill(words, first, rest, columns):
    """Lines of at most `columns`: `first` before the first line, `rest` before the others."""
    lines, line = [], first
    empty = True
    for word in words:
        if not empty and len(line) + 1 + len(word) > columns:
            lines.append(line)
            line, empty = rest, True
        line += word if empty else " " + word
        empty = False
    return lines + [line]


def paragraphs(lines):
    """Splits stripped comment lines into (kind, lines): "empty", "verbatim", "text" or a hanging width."""
    groups = []
    for line in lines:
        indent = len(line) - len(line.lstrip())
        kind = groups[-1][0] if groups else "empty"
        hangs = ITEM.match(line) or DEFINITION.match(line)
        if not line.strip():
            groups.append(("empty", [line]))
        elif isinstance(kind, int) and indent == kind:
            groups[-1][1].append(line)
        elif indent >= 4:
            groups.append(("verbatim", [line]))
        elif hangs:
            groups.append((len(hangs.group(1)), [line]))
        elif kind == "text":
            groups[-1][1].append(line)
        else:
            groups.append(("text", [line]))
    return groups


def wrapped(comment, indent, columns=COMMENT_COLUMNS, every=False):
    """The text of a comment that stands alone on its lines, `indent` spaces from the left. `every`: fill all
    paragraphs, not only those that are too long."""
    ruler = RULER.fullmatch(comment)
    if ruler:
        dashes = columns - indent - len("/* ---- ") - len(ruler.group(1)) - len("  */")
        return "/* ---- " + ruler.group(1) + " " + "-" * max(dashes, 4) + " */"
    opening = "/**" if comment.startswith("/**") and not comment.startswith("/**/") else "/*"
    margin = len(opening)  # both kinds put their text one column behind the opening
    body = comment[len(opening):-2].rstrip().split("\n")
    lines = [body[0].strip()]
    for line in body[1:]:
        line = re.sub(r"^\s*\*", "", line).rstrip()
        lines.append(line[min(len(line) - len(line.lstrip()), margin - 1):])
    out = []
    for number, (kind, group) in enumerate(paragraphs(lines)):
        prefix = " " * indent + " *" + " " * (margin - 1)
        width = [len(prefix) + len(line) for line in group]
        if kind in ("empty", "verbatim") or not (every or max(width) > columns):
            out += [prefix + line for line in group]
            continue
        hang = kind if isinstance(kind, int) else 0
        text = " ".join(line.strip() for line in group)
        text = UNBROKEN.sub(lambda match: match.group(0).replace(" ", GLUE), text)
        head = group[0][:hang] if hang else ""
        words = (text[len(head.strip()):] if hang else text).split()
        out += fill(words, prefix + head, prefix + " " * hang, columns)
    if len(out[-1]) + 3 > columns:  # the closing mark takes the last word along
        line = out[-1].rstrip()
        cut = line.rfind(" ", len(prefix) + 1)
        if cut > len(prefix):
            out[-1:] = [line[:cut], prefix + line[cut + 1:]]
    out[0] = " " * indent + opening + " " + out[0][len(" " * indent + " *" + " " * (margin - 1)):]
    return "\n".join(line.rstrip() for line in out).replace(GLUE, " ")[indent:] + " */"


def moved_up(text):
    """Comments behind code that end beyond the last column, each above its line."""
    lines = text.split("\n")
    out = []
    for line in lines:
        match = re.fullmatch(r"(\s*)(\S.*?)\s*(/\* .* \*/)", line)
        spans = list(block_comments(line))
        if (len(line) > CODE_COLUMNS and match and spans and line[spans[-1][0]:] == match.group(3)
                and not (out and out[-1].endswith("\\"))):
            indent = match.group(1)
            if match.group(2).startswith("#"):
                indent = ""
            out += [indent + match.group(3), match.group(1) + match.group(2)]
        else:
            out.append(line)
    return "\n".join(out)


def rewrite(text, every=False):
    """The text of a file with its comments wrapped."""
    text = moved_up(text)
    out, done = [], 0
    for start, end in block_comments(text):
        line_start = text.rfind("\n", 0, start) + 1
        line_end = text.find("\n", end)
        before, behind = text[line_start:start], text[end:line_end if line_end >= 0 else len(text)]
        if before.strip() or behind.strip() or "\\\n" in text[start:end]:
            continue
        out += [text[done:start], wrapped(text[start:end], len(before), every=every)]
        done = end
    return "".join(out) + text[done:]


def faults(text):
    """Yields (line number, columns, limit) of lines whose comments are too long."""
    alone = set()
    for start, end in block_comments(text):
        line_start = text.rfind("\n", 0, start) + 1
        line_end = text.find("\n", end)
        if not text[line_start:start].strip() and not text[end:line_end if line_end >= 0 else len(text)].strip():
            first = text.count("\n", 0, start) + 1
            alone.update(range(first, first + text.count("\n", start, end) + 1))
    for number, line in enumerate(text.split("\n"), 1):
        limit = COMMENT_COLUMNS if number in alone else CODE_COLUMNS
        if len(line) > limit:
            yield number, len(line), limit


def sources(paths):
    for path in map(pathlib.Path, paths):
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.suffix in SUFFIXES)
        else:
            yield path


def main(arguments):
    check = "--check" in arguments
    bad = 0
    for path in sources(a for a in arguments if a != "--check"):
        text = path.read_text()
        if not check:
            new = rewrite(text)
            if new != text:
                path.write_text(new)
            text = new
        for number, columns, limit in faults(text):
            print(f"{path}:{number}: {columns} columns, at most {limit}")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
