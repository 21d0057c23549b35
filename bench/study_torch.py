#!/usr/bin/env python3
"""study_torch.py - PyTorch's side of the studies `equivalence*`. SPDX-License-Identifier: MIT

    bench/study_torch.py --data cifar-10-batches-bin --out docs/results/torch.csv [--functions gelu,relu,berlu]
                         [--seeds 1-10] [--study equivalence] [--for 540]
    bench/study_torch.py --device cpu --model vit_micro/8 --epochs 2 --batch 128 --study equivalence_small ...

Trains timm's ViT-Tiny/4 on CIFAR-10 by the recipe `paper` (docs/training.md): AdamW 1e-3 at batch 1024, five epochs of
warm-up, half a cosine, decay 0.05 on matrices, clip 1, 100 epochs, no augmentation, bf16 autocast, accuracy on the test
images after the last epoch. Weights come from timm's own initialisation and the order of the images from torch's own
generator: nothing of berlu takes part, only the activation composed of torch operations is shared with losses_torch.py.

FILE is what `berlu study import` reads (docs/studies.md), a row per run. Rows that are there are kept and not run
again, so the same line tops a file up to ten seeds, and goes on where --for or a kill ended it: the file is replaced as
a whole after every run, under a lock, so several processes may share it. Without --study, rows made with another
model, other epochs, batches or fewer images belong to a study `trial`, which no report takes up.

On a GPU the step, from the bytes of the images to the updated weights, is one captured CUDA graph around a compiled
model; the learning rate and the position in the epoch are read from device memory. A second seed of a function replays
the same graph after weights, moments and counters were set again in place. Where a capture or a compilation fails, its
traceback is printed and the runs are made by the compiled or the plain step: slower, the same training. On the CPU the
step is plain and in f32; a run gives the same bits whether it comes first in a process or later
(tests/python/test_study_torch.py).
Needs torch, timm and numpy."""

import argparse
import csv
import fcntl
import gc
import hashlib
import math
import os
import pathlib
import sys
import time
import traceback

import numpy as np
import timm
import torch
from torch import nn
from torch.nn import functional as F

from losses_torch import BerLU

FUNCTIONS = {"gelu": nn.GELU, "relu": nn.ReLU, "berlu": lambda *_, **__: BerLU(0.01, 0.01)}
COLUMNS = ["study", "source", "cell", "seed", "value", "loss", "train_loss", "torch", "timm", "device", "weights"]
MODELS = {  # options of timm's vit_tiny_patch16_224
    "vit_tiny_cifar": {"patch_size": 4},
    "vit_micro/8": {"patch_size": 8, "embed_dim": 64, "depth": 4, "num_heads": 2},
}
EPOCHS, BATCH, WARMUP = 100, 1024, 5
RATE, FIRST_RATE, LAST_RATE = 1e-3, 1e-6, 1e-5
DECAY, CLIP = 0.05, 1.0
TEST_BATCH = 2000
STEPS = ("graph", "compiled", "plain")  # fastest first


class Mistake(Exception):
    """Of the caller: one line, exit 2."""


class Late(Exception):
    """A run that cannot end before --for; nothing of it is kept."""


# ---- data and rows ---------------------------------------------------------------------------------------------------


class Images:
    """The official binary files, as bytes on the device."""

    def __init__(self, folder, device, limit):
        self.pixels, self.labels = self.read(sorted(folder.glob("data_batch_*.bin")), folder, device, limit)
        self.test_pixels, self.test_labels = self.read([folder / "test_batch.bin"], folder, device, limit)
        values = self.pixels.float()
        self.mean, self.std = (m(dim=(0, 2, 3), keepdim=True) for m in (values.mean, values.std))

    @staticmethod
    def read(files, folder, device, limit):
        try:
            rows = np.concatenate([np.fromfile(file, "u1").reshape(-1, 3073) for file in files])[:limit]
        except (OSError, ValueError) as error:
            raise Mistake(f"{folder}: no CIFAR-10 in binary files: {error}") from None
        pixels, labels = rows[:, 1:].reshape(-1, 3, 32, 32).copy(), rows[:, 0].astype("i8")
        if labels.max() > 9:
            raise Mistake(f"{folder}: label {labels.max()} of CIFAR-10")
        return torch.from_numpy(pixels).to(device), torch.from_numpy(labels).to(device)

    def normal(self, pixels):
        return (pixels.float() - self.mean) / self.std


class Rows:
    """The results, kept in a CSV file that is whole at any time; processes may share it."""

    def __init__(self, path):
        self.path, self.items = path, self.read(path)

    @staticmethod
    def read(path):
        if not path.exists():
            return []
        with open(path, newline="") as file:
            items = list(csv.DictReader(file))
        if any(not row.get(key) for row in items for key in COLUMNS[:5]):
            raise Mistake(f"{path}: columns {', '.join(COLUMNS[:5])} are needed in every row")
        return items

    def has(self, study, cell, seed):
        return any((row["study"], row["cell"], row["seed"]) == (study, cell, str(seed)) for row in self.items)

    def add(self, row):
        folder = os.open(self.path.resolve().parent, os.O_RDONLY)  # locked itself, so that no lock file stays behind
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            self.items = [*self.read(self.path), {key: str(value) for key, value in row.items()}]
            self.write()
        finally:
            os.close(folder)

    def write(self):
        order = {cell: i for i, cell in enumerate(FUNCTIONS)}
        self.items.sort(key=lambda r: (r["study"], order.get(r["cell"], len(order)), r["cell"], int(r["seed"])))
        columns = list(dict.fromkeys([*COLUMNS, *(key for row in self.items for key in row)]))
        draft = self.path.with_name(self.path.name + ".new")
        with open(draft, "w", newline="") as file:
            writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.items)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self.path)


# ---- training --------------------------------------------------------------------------------------------------------


def model_make(name, cell):
    sizes = MODELS[name]
    return timm.create_model("vit_tiny_patch16_224", img_size=32, num_classes=10, act_layer=FUNCTIONS[cell], **sizes)


def rate_at(step, per_epoch, epochs):
    warm, total = min(WARMUP, epochs / 2) * per_epoch, epochs * per_epoch
    if step < warm:
        return FIRST_RATE + (RATE - FIRST_RATE) * step / warm
    return LAST_RATE + 0.5 * (RATE - LAST_RATE) * (1 + math.cos(math.pi * (step - warm) / (total - warm)))


class Trainer:
    """A model, its optimizer and one step over buffers whose addresses never change; serves all seeds of a function."""

    def __init__(self, cell, images, args):
        self.name, self.cell, self.images, self.epochs, self.device = args.model, cell, images, args.epochs, args.device
        self.batch, self.per_epoch = args.batch, len(images.labels) // args.batch
        self.model = model_make(self.name, cell).to(self.device).train()
        self.forward = self.model
        rates = [rate_at(step, self.per_epoch, self.epochs) for step in range(self.epochs * self.per_epoch)]
        self.rates = torch.tensor(rates, device=self.device)
        self.rate = torch.zeros((), device=self.device)
        self.count = torch.zeros(1, dtype=torch.int64, device=self.device)
        self.total = torch.zeros((), device=self.device)
        self.lanes = torch.arange(self.batch, device=self.device)
        self.order = torch.arange(len(images.labels), device=self.device)
        self.optimizer = self.optimizer_make()
        self.step, self.kind = self.step_plain, "plain"

    def optimizer_make(self):
        still = ("cls_token", "pos_embed")
        named = list(self.model.named_parameters())
        decay = [p for n, p in named if p.dim() > 1 and n not in still]
        rest = [p for n, p in named if p.dim() <= 1 or n in still]
        groups = [{"params": decay, "weight_decay": DECAY}, {"params": rest, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=self.rate, fused=True, capturable=self.device == "cuda")
        assert all(group["lr"] is self.rate for group in optimizer.param_groups)  # not a copy: the step writes it
        return optimizer

    def autocast(self):
        return torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda")

    def step_plain(self):
        rows = self.order[(self.count % self.per_epoch) * self.batch + self.lanes]
        self.rate.copy_(self.rates[self.count].squeeze(0))
        with self.autocast():
            logits = self.forward(self.images.normal(self.images.pixels[rows]))
            loss = F.cross_entropy(logits.float(), self.images.labels[rows])
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP, foreach=True)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.total += loss.detach()
        self.count += 1

    def prepare(self, kinds):
        """Takes the first kind of step that works. The weights it trains on meanwhile are of no use."""
        for kind in kinds:
            try:
                self.forward = self.model if kind == "plain" else torch.compile(self.model)
                if kind != "plain":
                    self.warm_up()
                self.step, self.kind = self.capture() if kind == "graph" else self.step_plain, kind
                return
            except Exception:  # whatever the compiler or the driver may raise
                traceback.print_exc()
                print(f"study_torch.py: no {kind} step of {self.cell}", file=sys.stderr)
                self.optimizer.zero_grad(set_to_none=True)
        raise SystemExit(1)

    def warm_up(self):
        """A capture needs kernels compiled, moments allocated and libraries opened, all on another stream."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.count.zero_()
                self.step_plain()
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()

    def capture(self):
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.step_plain()
        return self.graph.replay

    @torch.no_grad()
    def start(self, seed):
        """Sets everything a run begins with, in place: the graph knows these addresses alone."""
        torch.manual_seed(seed)
        fresh = model_make(self.name, self.cell).state_dict()
        for name, value in self.model.state_dict().items():
            value.copy_(fresh[name])
        for state in self.optimizer.state.values():
            for value in state.values():
                value.zero_()
        self.count.zero_()

    def epoch(self):
        self.order.copy_(torch.randperm(len(self.order), device=self.device))
        self.total.zero_()
        for _ in range(self.per_epoch):
            self.step()

    def run(self, seed, deadline):
        """One run; returns loss of the last epoch, seconds of all epochs."""
        self.start(seed)
        begin = time.monotonic()
        for done in range(1, self.epochs + 1):
            self.epoch()
            if done == 1 and deadline is not None:
                self.total.item()  # waits
                if time.monotonic() + (time.monotonic() - begin) * (self.epochs - 1) > deadline:
                    raise Late
        return self.total.item() / self.per_epoch, time.monotonic() - begin

    @torch.no_grad()
    def test(self):
        """Top-1 in percent and mean loss over the test images."""
        self.model.eval()
        hits, loss = 0, 0.0
        for first in range(0, len(self.images.test_labels), TEST_BATCH):
            labels = self.images.test_labels[first : first + TEST_BATCH]
            with self.autocast():
                logits = self.model(self.images.normal(self.images.test_pixels[first : first + TEST_BATCH])).float()
            hits += (logits.argmax(1) == labels).sum().item()
            loss += F.cross_entropy(logits, labels, reduction="sum").item()
        self.model.train()
        return 100 * hits / len(self.images.test_labels), loss / len(self.images.test_labels)

    def weights_sum(self):
        total = hashlib.sha256()
        for value in self.model.state_dict().values():
            total.update(value.cpu().numpy().tobytes())
        return total.hexdigest()


# ---- the command -----------------------------------------------------------------------------------------------------


def seeds_read(text):
    seeds = []
    try:
        for part in text.split(","):
            first, dash, last = part.partition("-")
            seeds += range(int(first), int(last if dash else first) + 1)
    except ValueError:
        raise Mistake(f"--seeds {text}: numbers and ranges like 2,8-10 are needed") from None
    if not seeds:
        raise Mistake(f"--seeds {text}: no seed")
    return list(dict.fromkeys(seeds))


def arguments_read():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=pathlib.Path, required=True, help="folder with data_batch_1.bin, test_batch.bin")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="CSV file for `berlu study import`; extended")
    parser.add_argument("--study", help="name of the study in the rows; equivalence or trial unless given")
    parser.add_argument("--model", choices=MODELS, default="vit_tiny_cifar")
    parser.add_argument("--functions", default=",".join(FUNCTIONS))
    parser.add_argument("--seeds", default="1-10")
    parser.add_argument("--for", dest="seconds", type=float, help="start no run that cannot end within these seconds")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--limit", type=int, help="of images, training and test")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--step", choices=STEPS, help="the first kind of step to try")
    args = parser.parse_args()
    args.functions, args.seeds = args.functions.split(","), seeds_read(args.seeds)
    unknown = [name for name in args.functions if name not in FUNCTIONS]
    if unknown:
        raise Mistake(f"--functions {unknown[0]}: one of {', '.join(FUNCTIONS)} is needed")
    if args.epochs < 1 or args.batch < 1 or args.limit is not None and args.limit < args.batch:
        raise Mistake("--epochs and --batch start at 1, --limit at the batch")
    if args.device == "cuda" and not torch.cuda.is_available():
        raise Mistake("--device cuda: PyTorch finds no GPU")
    first = STEPS.index(args.step) if args.step else 0
    args.kinds = STEPS[first:] if args.device == "cuda" else ("plain",)
    return args


def study_name(args, images):
    sizes = (args.model, args.epochs, args.batch, len(images.labels), len(images.test_labels))
    return args.study or ("equivalence" if sizes == ("vit_tiny_cifar", EPOCHS, BATCH, 50000, 10000) else "trial")


def work_left(args, rows):
    for cell in args.functions:
        seeds = [seed for seed in args.seeds if not rows.has(args.study, cell, seed)]
        if seeds:
            yield cell, seeds


def run_one(trainer, seed, args, rows, deadline):
    """Trains, tests, reports and keeps one run; returns 1 when it diverged."""
    train_loss, seconds = trainer.run(seed, deadline)
    top1, loss = trainer.test()
    trained = trainer.per_epoch * trainer.batch
    print(
        f"{trainer.cell} seed {seed}: top1 {top1:.2f}, loss {loss:.4f}, train loss {train_loss:.4f}; "
        f"{trained * trainer.epochs / seconds:,.0f} images/s, {seconds:.1f} s",
        flush=True,
    )
    if not math.isfinite(train_loss):
        print(f"study_torch.py: {trainer.cell}, seed {seed}: the loss is not finite; no row", file=sys.stderr)
        return 1
    device = torch.cuda.get_device_name() if args.device == "cuda" else "cpu"
    rows.add(dict(zip(COLUMNS, (args.study, "pytorch", trainer.cell, seed, top1, loss, train_loss, torch.__version__,
                                timm.__version__, device, trainer.weights_sum()))))  # fmt: skip
    return 0


def runs_make(args):
    deadline = None if args.seconds is None else time.monotonic() + args.seconds
    rows, images = Rows(args.out), Images(args.data, args.device, args.limit)
    if len(images.labels) < args.batch:
        raise Mistake(f"--batch {args.batch}: the set has {len(images.labels)} images")
    args.study = study_name(args, images)
    failed, longest = 0, 0.0
    for cell, seeds in work_left(args, rows):
        begin = time.monotonic()
        if deadline is not None and begin + longest > deadline:
            raise Late
        torch.compiler.reset()
        trainer = Trainer(cell, images, args)
        trainer.prepare(args.kinds)
        print(f"{cell}: {trainer.kind} step ready after {time.monotonic() - begin:.1f} s", flush=True)
        for seed in seeds:
            begin = time.monotonic()
            if deadline is not None and begin + longest > deadline:
                raise Late
            failed += run_one(trainer, seed, args, rows, deadline)
            longest = max(longest, time.monotonic() - begin)
        del trainer
        gc.collect()  # the step is a method of its trainer
        if args.device == "cuda":
            torch.cuda.empty_cache()
    return 1 if failed else 0


def main():
    try:
        args = arguments_read()
        torch.backends.cuda.matmul.allow_tf32 = True
        return runs_make(args)
    except Mistake as mistake:
        print(f"study_torch.py: {mistake}", file=sys.stderr)
        return 2
    except Late:
        print("study_torch.py: the time is over; the same line goes on", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main())
