#!/usr/bin/env python3
"""test_docs.py BERLU - every training that a page shows learns. SPDX-License-Identifier: MIT

Takes the shell blocks of README.md and docs/training.md and the examples of `berlu train --help`, runs each `berlu train` that needs
neither data nor a GPU nor a file of somebody else's, in order, in a folder of its own, and asks for twice chance on the test images.
What is left out is named. A page whose example ends at chance is worse than none."""
import itertools, json, os, pathlib, re, shlex, subprocess, sys, tempfile

berlu = os.path.abspath(sys.argv[1])
root = pathlib.Path(__file__).resolve().parent.parent
CLASSES = 10  # of the synthetic set


def joined(text):
    return re.sub(r"\\\n\s*", " ", text).splitlines()


def unrolled(lines):
    """The lines with loops `for a in x y; do for b in 0 1; do ... done; done` written out."""
    loops, body = [], []
    for line in lines:
        heads = re.findall(r"for (\w+) in ([^;]+); do", line)
        if loops and line.startswith("done"):
            for values in itertools.product(*(words.split() for _, words in loops)):
                for inner in body:
                    for (name, _), value in zip(loops, values):
                        inner = inner.replace("$" + name, value)
                    yield inner
            loops, body = [], []
        elif heads:
            loops += heads
        elif loops:
            body.append(line)
        else:
            yield line


def pages():
    for name in ("README.md", "docs/training.md"):
        blocks = re.findall(r"^```(?:sh)?\n(.*?)^```$", (root / name).read_text(), flags=re.S | re.M)
        yield name, [line for block in blocks for line in unrolled(joined(block))]
    shown = subprocess.run([berlu, "train", "--help"], capture_output=True, text=True, check=True).stdout
    yield "berlu train --help", joined(shown)


def reason(words):
    if "--data" in words and words[words.index("--data") + 1] != "synthetic":
        return "needs data"
    if "cuda" in words:
        return "needs a GPU"
    return None


def main():
    failed = ran = 0
    for page, lines in pages():
        with tempfile.TemporaryDirectory() as folder:
            for line in (line.strip() for line in lines):
                if not line.startswith("berlu train --"):
                    continue
                words = shlex.split(line, comments=True)
                run = words[words.index("--run") + 1] if "--run" in words else None
                why = reason(words)
                if not why and "--resume" in words and not os.path.exists(os.path.join(folder, run, "run.json")):
                    why = "resumes a run that is not made here"
                if why:
                    print(f"{page}: left out, {why}: {' '.join(words)}")
                    continue
                done = subprocess.run([berlu, *words[1:], "--json", "--quiet"], cwd=folder, capture_output=True, text=True)
                if done.returncode:
                    print(f"{page}: {' '.join(words)}\n    exit {done.returncode}: {done.stderr.strip()}")
                    failed += 1
                    continue
                result, ran = json.loads(done.stdout), ran + 1
                if "--dry-run" in words:
                    continue
                top1 = result["test_top1"]
                print(f"{page}: {top1:.1f} %: {' '.join(words)}")
                failed += top1 < 200 / CLASSES
    print(f"{ran} trainings, {failed} that do not learn")
    return 1 if failed or ran < 5 else 0


sys.exit(main())
