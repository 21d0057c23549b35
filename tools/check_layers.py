#!/usr/bin/env python3
"""check_layers.py - a layer uses only itself and the layers above it. SPDX-License-Identifier: MIT

    check_layers.py [SOURCE [BUILD]]

Reads the #include lines of src/, include/ and cli/. Public headers (<berlu/...>) are open to every layer; they themselves
include nothing of src/. cli/ is the last layer. Also refused: an include that names no layer ("x.h" inside src/), because
then the reader cannot see where it comes from, and a file that ends the process or prints from inside a library.
With BUILD the linker's view is checked too: no object of a layer may need a symbol that only a layer below defines."""
import pathlib, re, subprocess, sys

LAYERS = ["base", "smooth", "simd", "act", "io", "graph", "passes", "engine", "cpu", "cuda", "backends", "models", "data", "train",
         "analyze", "study", "report"]
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
ALLOWED = {("src/study/process.c", "_exit")}  # the child of a fork whose exec failed
FORBIDDEN = re.compile(r"(?<![\w.>])(exit|abort|_exit|printf|puts|putchar|perror|system)\s*\(")

root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
faults = []


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"', lambda m: m.group() if m.group().endswith('.h"') else '""', text)
    return re.sub(r"//[^\n]*", "", text)


def check(path, layer):
    order = LAYERS.index(layer)
    for number, line in enumerate(without_comments(path.read_text()).splitlines(), 1):
        where = f"{path.relative_to(root)}:{number}"
        if match := INCLUDE.match(line):
            first, _, rest = match[1].partition("/")
            if match[1] == "backends.h":  # a layer of two files, which need no folder
                first, rest = "backends", "backends.h"
            if not rest or first not in LAYERS:
                faults.append(f'{where}: "{match[1]}" names no layer; write "layer/file.h"')
            elif LAYERS.index(first) > order:
                faults.append(f'{where}: {layer} may not include "{match[1]}": {first} stands below it')
        elif (match := FORBIDDEN.search(line)) and (str(path.relative_to(root)), match[1]) not in ALLOWED:
            faults.append(f"{where}: {match[1]}() inside a library; return a status instead")


count = 0
for layer_folder in sorted((root / "src").iterdir()):
    if not layer_folder.is_dir():
        continue
    if layer_folder.name not in LAYERS:
        faults.append(f"src/{layer_folder.name}: is not a layer; tools/check_layers.py has the list")
        continue
    for path in sorted(layer_folder.rglob("*")):
        if path.suffix in (".c", ".h", ".cu", ".cuh"):
            check(path, layer_folder.name)
            count += 1
for path in sorted((root / "src").glob("backends.*")):
    check(path, "backends")
    count += 1
for path in sorted((root / "include").rglob("*.h")):
    count += 1
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match and not match[1].startswith("berlu/"):
            faults.append(f"{path.relative_to(root)}:{number}: a public header may include only <berlu/...>")



def layer_of(path, build):
    parts = path.relative_to(build / "src").parts
    if parts[0] in LAYERS:
        return parts[0]
    return "backends" if "layer_backends.dir" in parts else None


def check_symbols(build):
    """Who defines and who needs each global symbol, by layer; a definition anywhere above or in the layer itself is enough."""
    defined, needed = {}, []
    objects = [(path, layer_of(path, build)) for path in sorted((build / "src").rglob("*.o"))]
    for path, layer in objects:
        if layer is None:
            continue
        for line in subprocess.check_output(["nm", "-g", str(path)], text=True).splitlines():
            kind, name = line.split()[-2:]
            if kind == "U":
                needed.append((layer, name, path.name))
            else:
                defined.setdefault(name, set()).add(LAYERS.index(layer))
    for layer, name, file in sorted(set(needed)):
        homes = defined.get(name)
        if homes and min(homes) > LAYERS.index(layer):
            faults.append(f"{layer}: {file} needs {name}, which {LAYERS[min(homes)]} below it defines")
    return len(defined)


symbols = check_symbols(pathlib.Path(sys.argv[2])) if len(sys.argv) > 2 else 0
print("\n".join(faults) or f"{count} files and {symbols} symbols keep the order of the layers")
sys.exit(1 if faults or not count else 0)
