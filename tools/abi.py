#!/usr/bin/env python3
"""abi.py BUILD [GOLDEN] - what programs linked with libberlu.so.0 rely on. SPDX-License-Identifier: MIT

Prints, from the public headers and the library: every function with its parameters and symbol version, every struct with
its size and the place of each field, every constant of an enumeration. With GOLDEN (tests/golden/abi_*.txt, printed by
this tool at a release) it compares instead: each line of the golden file must still be true, new lines are allowed. A
change that breaks one needs another SOVERSION; then the golden file is printed anew. libabigail's abidiff asks the same
of debug information; this needs only a compiler."""
import os, pathlib, re, subprocess, sys, tempfile

build = pathlib.Path(sys.argv[1])
root = pathlib.Path(__file__).resolve().parent.parent
HEADERS = ["status.h", "smooth.h", "act.h"]


def source():
    text = "\n".join((root / "include" / "berlu" / name).read_text() for name in HEADERS)
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r"^\s*#(?:\\\n|.)*$", " ", text, flags=re.M)


def squeeze(text):
    return re.sub(r"\s*([*,()])\s*", r"\1", re.sub(r"\s+", " ", text)).replace(",", ", ").strip()


def field_names(body):
    for statement in body.split(";"):
        statement = statement.strip()
        if not statement:
            continue
        pointer = re.search(r"\(\s*\*\s*(\w+)\s*\)\s*\(", statement)
        if pointer:
            yield pointer[1]
            continue
        for part in statement.split(","):
            yield re.findall(r"(\w+)\s*(?:\[[^\]]*\])*\s*$", part.strip())[0]


def exported():
    out = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions", str(build / "libberlu.so")],
                         capture_output=True, text=True, check=True).stdout
    return {name.split("@")[0]: name.split("@")[-1] for name in (line.split()[-1] for line in out.splitlines()) if "@" in name}


def measured(expressions):
    """The values of C expressions, by a program that prints them."""
    lines = "\n".join(f'    printf("%lld\\n", (long long)({e}));' for e in expressions)
    program = f"#include <stddef.h>\n#include <stdio.h>\n#include <berlu/berlu.h>\nint main(void)\n{{\n{lines}\n}}\n"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "abi.c"
        path.write_text(program)
        subprocess.run([os.environ.get("CC", "cc"), "-std=c11", f"-I{root / 'include'}", str(path), "-o", str(path) + ".out"],
                       check=True)
        return subprocess.run([str(path) + ".out"], capture_output=True, text=True, check=True).stdout.split()


def lines():
    text, versions = source(), exported()
    found = []
    for declaration in re.findall(r"BERLU_API\s+([^;{]*?\))\s*(?:__attribute__[^;]*)?;", text):
        name = re.search(r"\b(berlu_\w+)\s*\(", declaration)[1]
        found.append(f"function {squeeze(declaration)} {versions.get(name, 'NOT EXPORTED')}")
    asked = []
    for name, body, end in re.findall(r"typedef\s+struct\s+(\w+)\s*\{(.*?)\}\s*(\w+)\s*;", text, flags=re.S):
        asked.append((f"struct {end}: bytes", f"sizeof({end})"))
        for field in field_names(body):
            asked.append((f"field {end}.{field}: offset", f"offsetof({end}, {field})"))
            asked.append((f"field {end}.{field}: bytes", f"sizeof((({end} *)0)->{field})"))
    for body in re.findall(r"enum\s+\w*\s*\{(.*?)\}", text, flags=re.S):
        for constant in re.findall(r"\b(BERLU_\w+)\b\s*(?:=[^,}]*)?(?:,|$)", body.strip()):
            asked.append((f"constant {constant}", constant))
    return found + [f"{what} {value}" for (what, _), value in zip(asked, measured([e for _, e in asked]))]


now = sorted(lines())
if len(sys.argv) < 3:
    print("\n".join(now))
    sys.exit(0)
golden = pathlib.Path(sys.argv[2]).read_text().splitlines()
lost = [line for line in golden if line not in set(now)]
print("\n".join(f"no longer true: {line}" for line in lost) or f"all {len(golden)} lines of {sys.argv[2]} hold, {len(now) - len(golden)} are new")
sys.exit(1 if lost or not golden else 0)
