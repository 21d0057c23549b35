#!/usr/bin/env python3
"""wrap_docs.py [--check] FILE... - wraps the prose of Markdown files at 120 columns. SPDX-License-Identifier: MIT

Only paragraphs and list items that have a longer line are filled anew; tables, code, headings, links' targets and HTML
stay as they are, and no line is broken inside `code`. --check lists the lines that are too long (exit 1)."""
import re
import sys
import textwrap

COLUMNS = 120
ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s+")
VERBATIM = re.compile(r"\s*$|\s*[|#<>]|    |\s*\[[^\]]+\]:|.*(?:  |\\)$")


def blocks(lines):
    """Yields (is_prose, lines): a paragraph or list item, or a line to be kept."""
    i, fenced = 0, False
    while i < len(lines):
        fence = lines[i].lstrip().startswith("```")
        if fence or fenced or VERBATIM.match(lines[i]):
            fenced ^= fence
            yield False, lines[i:i + 1]
            i += 1
            continue
        end = i + 1
        while end < len(lines) and not (VERBATIM.match(lines[end]) or ITEM.match(lines[end])
                                        or lines[end].lstrip().startswith("```")):
            end += 1
        yield True, lines[i:end]
        i = end


def fill(lines):
    first = (ITEM.match(lines[0]) or re.match(r"\s*", lines[0])).group()
    words = " ".join([lines[0][len(first):]] + [line.strip() for line in lines[1:]])
    words = re.sub(r"`[^`]*`", lambda code: code.group().replace(" ", "\0"), words)
    filled = textwrap.wrap(words, COLUMNS, initial_indent=first, subsequent_indent=" " * len(first),
                           break_long_words=False, break_on_hyphens=False)
    if any(ITEM.match(line) or VERBATIM.match(line) for line in filled[1:]):
        return lines  # a word that would begin a list or a table
    return [line.replace("\0", " ") for line in filled]


def main(words):
    check, found = "--check" in words, False
    for path in (word for word in words if word != "--check"):
        with open(path, encoding="utf-8") as file:
            lines, out, at = file.read().split("\n"), [], 0
        for is_prose, block in blocks(lines):
            long = is_prose and max(map(len, block)) > COLUMNS
            if check and long:
                found = True
                print(*(f"{path}:{at + k + 1}" for k, line in enumerate(block) if len(line) > COLUMNS), sep="\n")
            out += fill(block) if long else block
            at += len(block)
        if not check and out != lines:
            with open(path, "w", encoding="utf-8") as file:
                file.write("\n".join(out))
    return 1 if found else 0


sys.exit(main(sys.argv[1:]))
