#!/usr/bin/env python3
"""check_symbols.py BUILD - the libraries show berlu_ names and nothing else. SPDX-License-Identifier: MIT

Every name that libberlu.so or libberlu.a defines for others begins with berlu_, both define the same ones, and each is
declared in a public header; every declared one is defined. A few are declared BERLU_API in src/ instead: they are for
libberlu_cuda, not for users, and the last line counts them. libberlu.so needs nothing beyond libc, libm and OpenMP."""
import pathlib, re, subprocess, sys

build = pathlib.Path(sys.argv[1])
root = pathlib.Path(__file__).resolve().parent.parent
ALLOWED = re.compile(r"lib(c|m|gomp|omp|gcc_s|pthread|asan|ubsan|tsan|gcov)\.so|ld-linux")
INSTRUMENTS = re.compile(r"^(__asan|__ubsan|__tsan|__odr_asan|__gcov|__sancov|_?_?start___sanc|_?_?stop___sanc)")


def names(*command):
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = {line.split()[-1].split("@")[0] for line in out.splitlines() if len(line.split()) >= 3 and line.split()[-2] != "A"}
    return {name for name in found if not INSTRUMENTS.match(name)}


shared = names("nm", "-D", "--defined-only", str(build / "libberlu.so"))
static = names("nm", "-g", "--defined-only", str(build / "libberlu.a"))


def declarations(headers):
    found = set()
    for header in headers:
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        found |= set(re.findall(r"BERLU_API[^;{]*?\b(berlu_\w+)\s*\(", text))
    return found


declared = declarations(h for h in (root / "include").rglob("*.h") if h.name != "act_cuda.h")  # that one: libberlu_cuda
between = declarations((root / "src").rglob("*.h"))
needed = re.findall(r"NEEDED.*\[(.*)\]", subprocess.run(["readelf", "-d", str(build / "libberlu.so")],
                                                        capture_output=True, text=True, check=True).stdout)
faults = [f"libberlu.so exports {n}" for n in sorted(shared) if not n.startswith("berlu_")]
faults += [f"libberlu.a defines {n} for others" for n in sorted(static) if not n.startswith("berlu_")]
faults += [f"{n} is exported but not in a public header" for n in sorted(shared | static) if n not in declared | between]
faults += [f"{n} is declared but not in libberlu.so" for n in sorted(declared - shared)]
faults += [f"{n} is declared but not in libberlu.a" for n in sorted(declared - static)]
faults += [f"libberlu.so needs {n}" for n in needed if not ALLOWED.match(n)]
print("\n".join(faults) or f"{len(shared)} names, all berlu_, {len(between)} of them for libberlu_cuda; libberlu.so needs {' '.join(needed)}")
sys.exit(1 if faults or not shared else 0)
