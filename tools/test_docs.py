#!/usr/bin/env python3
"""test_docs.py BERLU [PAGE...] - the commands that the pages show work, and their trainings learn. SPDX-License-Identifier: MIT

Runs every ```sh block of PAGES, and the lines `$ COMMAND` of blocks without a language, in the order of the page: one shell that
stops at the first failure, in a folder of the page's own. Left out are blocks whose fence has the word `notest` (they need a network,
a GPU, data, files of somebody else's or an hour) and, by name, lines whose program is not installed or never ends. A block
```yaml FILE is that file. A training that the page shows must end at twice chance on the test images: an example that ends at chance
is worse than none.

SHORTER makes long examples short; trainings of such a page need not learn. A training that ran before is copied. Examples of `berlu
train --help` are run as those of a page; those that name data or a GPU are left out."""
import csv, json, os, pathlib, re, shlex, shutil, subprocess, sys, tempfile, time

berlu = os.path.abspath(sys.argv[1])
root = pathlib.Path(__file__).resolve().parent.parent
CLASSES = 10  # of the synthetic set
PAGES = ["README.md"] + [f"docs/{name}.md" for name in ("training", "studies", "smooth", "data", "analyses", "building")]
SHORTER = {
    "README.md": [("studies/quick.yaml", "seeds: 4", "seeds: 2"), ("studies/quick.yaml", "epochs: 8", "epochs: 2")],
    "docs/studies.md": [(None, "seeds: 4", "seeds: 2"), (None, "epochs: 8", "epochs: 2")],
    "docs/data.md": [(None, "--epochs 20", "--epochs 1"), (None, "--epochs 16", "--epochs 2 --synthetic-images 1000")],
    "docs/analyses.md": [(None, "--epochs 8", "--epochs 2")],
}

# Stands for the command in the shell: trainings that ran before are copied, all are listed for the check.
STAND_IN = """#!/usr/bin/env python3
import json, os, shutil, subprocess, sys
berlu, done, listed = {berlu!r}, {done!r}, {listed!r}
words = sys.argv[1:]
run = words[words.index("--run") + 1] if "--run" in words else None
fresh = words[:1] == ["train"] and run and not {{"--resume", "--dry-run", "--init"}} & set(words)
key = json.dumps(sorted(w for w in words if w not in ("--run", run, "--quiet")))
known = json.load(open(done)) if os.path.exists(done) else {{}}
if fresh and key in known and not os.path.exists(run):
    shutil.copytree(known[key], run, symlinks=True)
    code = 0
else:
    code = subprocess.run([berlu, *words]).returncode
if words[:1] == ["train"] and "--dry-run" not in words and code == 0:
    open(listed, "a").write(json.dumps([os.path.abspath(run), words]) + "\\n")
    if fresh:
        known[key] = os.path.abspath(run)
        json.dump(known, open(done, "w"))
sys.exit(code)
"""


def logical_lines(block):
    """Lines with continuations, here-documents, loops and && at their ends kept whole."""
    lines, whole, word, depth = block.splitlines(), [], None, 0
    for line in lines:
        whole.append(line)
        if word is not None:
            word = None if line == word else word
        else:
            here = re.search(r"<<-?'?(\w+)'?", line)
            word = here.group(1) if here else None
            code = line.split(" #")[0]
            depth += len(re.findall(r"\bdo\b", code)) - len(re.findall(r"\bdone\b", code))
        if word is None and depth == 0 and not line.endswith("\\"):
            yield "\n".join(whole)
            whole = []
    if whole:
        yield "\n".join(whole)


def can_run(line):
    first = shlex.split(line.split("\n")[0].split(" #")[0].rstrip("\\"), comments=True, posix=False)[:1]
    return first != ["tensorboard"] and (not first or first[0] in ("berlu", "for", "export") or shutil.which(first[0]))


def commands(page, text):
    """The files and shell lines of a page, in order."""
    for fence, block in re.findall(r"^```([^\n]*)\n(.*?)^```$", text, flags=re.S | re.M):
        words = fence.split()
        if words[:1] == ["yaml"] and len(words) > 1:
            yield "file", words[1], block
        elif words[:1] == ["sh"] and "notest" not in words:
            for line in logical_lines(block):
                yield "line", line, None
        elif not words:
            for line in re.findall(r"^\$ (.*)$", block, flags=re.M):
                yield "line", line, None


def help_lines():
    shown = subprocess.run([berlu, "train", "--help"], capture_output=True, text=True, check=True).stdout
    for line in re.sub(r"\\\n\s*", " ", shown).splitlines():
        words = shlex.split(line.strip(), comments=True) if line.strip().startswith("berlu train --") else []
        if not words:
            continue
        data = words[words.index("--data") + 1] if "--data" in words else "synthetic"
        if data != "synthetic" or "cuda" in words or "--resume" in words:
            print(f"berlu train --help: left out, needs data, a GPU or a run: {' '.join(words)}")
        else:
            yield "line", shlex.join(words), None


def place_make(folder, page):
    """What the pages name without making it: files of the sources, a folder of images, two images."""
    for name in ("docs", "studies"):
        shutil.copytree(root / name, folder / name)
    for path, old, new in SHORTER.get(page, []):
        if path:
            text = (folder / path).read_text()
            assert old in text, f"{path}: '{old}' is not in it; see SHORTER"
            (folder / path).write_text(text.replace(old, new))
    subprocess.run([berlu, "data", "make", "synthetic", "--out", "flowers", "--images", "50"], cwd=folder, check=True,
                   capture_output=True)
    images = sorted((folder / "flowers").glob("train/*/*.png"))
    for name, image in zip(("cat.png", "dog.jpg"), images):
        shutil.copy(image, folder / name)


def trained_badly(listed, learns):
    """Whether a training listed ended below twice chance; says how each ended."""
    bad = 0
    for line in listed.read_text().splitlines() if listed.exists() else []:
        run, words = json.loads(line)
        with open(os.path.join(run, "metrics.csv"), newline="") as rows:
            top1 = [float(row["test_top1"]) for row in csv.DictReader(rows) if row["test_top1"]][-1]
        print(f"    {top1:.1f} %: berlu {shlex.join(words)}")
        bad += learns and "linear" not in words and top1 < 200 / CLASSES
    return bad


def page_run(page, parts, scratch):
    folder, listed = scratch / page.replace("/", "-").replace(" ", "-"), scratch / "trained"
    folder.mkdir()
    place_make(folder, page)
    listed.unlink(missing_ok=True)
    began, script = time.time(), ["set -eo pipefail"]
    for kind, what, block in parts:
        for path, old, new in SHORTER.get(page, []):
            what = what.replace(old, new) if not path else what
        if kind == "file":
            (folder / what).write_text(block)
        elif can_run(what):
            script += [f"echo {shlex.quote(what)} >shown", what + "\n[ $? = 0 ]"]  # -e lets `a && b` pass where a fails
        else:
            print(f"{page}: left out, not installed or without an end: {what}")
    env = dict(os.environ, PATH=f"{scratch / 'bin'}:{os.environ['PATH']}")
    done = subprocess.run(["bash", "-c", "\n".join(script)], cwd=folder, env=env, capture_output=True, text=True)
    failed = done.returncode != 0
    if failed:
        print(f"{page}: exit {done.returncode}: {(folder / 'shown').read_text()}{done.stderr[-2000:]}")
    print(f"{page}: {len(script) // 2} commands, {time.time() - began:.0f} s")
    return failed + trained_badly(listed, all(path for path, _, _ in SHORTER.get(page, [])))


def main():
    asked, failed = sys.argv[2:] or PAGES + ["berlu train --help"], 0
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        (scratch / "bin").mkdir()
        stand_in = scratch / "bin" / "berlu"
        stand_in.write_text(STAND_IN.format(berlu=berlu, done=str(scratch / "done"), listed=str(scratch / "trained")))
        stand_in.chmod(0o755)
        for page in asked:
            parts = help_lines() if page.startswith("berlu ") else commands(page, (root / page).read_text())
            failed += page_run(page, list(parts), scratch)
    print(f"{failed} failures" if failed else "all commands work, and what is trained learns")
    return 1 if failed else 0


sys.exit(main())
