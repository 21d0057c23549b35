"""The activations of berlu inside timm, and runs of the berlu engine as timm models.
SPDX-License-Identifier: MIT

    import timm, berlu.timm
    model = timm.create_model("vit_tiny_patch16_224", act_layer="berlu")
    model = berlu.timm.load("run")            # weights, activation, mean and std of a run folder
    berlu.timm.save(model, "w.safetensors")   # for `berlu eval MODEL --weights w.safetensors`

Importing this module gives timm's table of activation layers every name of berlu that it does not
have itself, and every spec: act_layer="berlu:eps=0.1". act_layer reaches all activations in a part of timm's families only;
berlu.torch.replace_activations() reaches them all."""

from __future__ import annotations

import functools
import json
import os
import pathlib
from typing import Any, Dict, List, Optional, Tuple, Union

import timm
import timm.layers.create_act
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from ._act import Act as Activation, act as make_act, names
from ._files import writable, written
from ._models import CALLS
from .torch import Act
from .torch._ops import check_model
from .torch._replace import kind_of


class _Layers(Dict[str, Any]):
    """timm's table of activation layers, extended so that a name may be a full spec."""

    def __missing__(self, name: str) -> Any:
        try:
            return functools.partial(Act, make_act(name).spec)
        except ValueError as error:
            raise KeyError(f"{name}: {error}") from None


_TABLE = _Layers(timm.layers.create_act._ACT_LAYER_DEFAULT)
timm.layers.create_act._ACT_LAYER_DEFAULT = _TABLE


def register(name: str, spec: Union[str, Activation]) -> None:
    """Makes `act_layer=name` mean an activation of berlu (timm spells names in lower case).

    >>> import berlu.timm
    >>> berlu.timm.register("my_berlu", "berlu:eps=0.1")
    """
    _TABLE[name.lower()] = functools.partial(Act, make_act(spec).spec)


for _name in names():
    if _name not in _TABLE:
        register(_name, _name)


# ---- Weights -------------------------------------------------------------------------------------

Tensors = Dict[str, torch.Tensor]


def _checkpoint(run: pathlib.Path, which: str) -> pathlib.Path:
    """The weights of a run folder; "ema" are the averaged weights of the last checkpoint."""
    folder = "last" if which == "ema" else which
    path = run / "checkpoints" / folder / ("ema.safetensors" if which == "ema" else "model.safetensors")
    if not path.exists():
        raise ValueError(f"berlu: {run} has no whole checkpoint '{which}': {path} is missing")
    return path


def _settings(run: pathlib.Path) -> Dict[str, Any]:
    try:
        settings: Dict[str, Any] = json.loads((run / "run.json").read_text())["settings"]
        return settings
    except OSError as error:
        raise ValueError(f"berlu: {run} is no run folder: {error}") from None
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"berlu: {run / 'run.json'} is not the description of a run: {error}") from None


def _arguments(settings: Dict[str, Any], tensors: Tensors) -> Tuple[str, Dict[str, Any]]:
    """timm's name and arguments for the model of a run."""
    name = settings.get("model", "")
    if name not in CALLS:
        raise ValueError(f"berlu: timm has no model for '{name}'")
    call, arguments = CALLS[name][0], dict(CALLS[name][1])
    for setting, argument in (
        ("patch", "patch_size"),
        ("stride", "first_stride"),
        ("stem", "patch_size"),
        ("image_size", "img_size"),
    ):
        if settings.get(setting) and not (argument == "img_size" and name.startswith("convnext")):
            arguments[argument] = int(settings[setting])
    for head in ("head.weight", "head.fc.weight"):
        if head in tensors:
            arguments["num_classes"] = tensors[head].shape[0]
    return call, arguments


def _mlps(model: nn.Module) -> List[Tuple[str, nn.Module]]:
    """The places of a model's activations, as the engine has them: the `act` of every MLP."""
    return [
        (name, module) for name, module in model.named_modules() if hasattr(module, "fc1") and hasattr(module, "act")
    ]


def _set_activations(model: nn.Module, specs: List[str], tensors: Tensors) -> None:
    sites = _mlps(model)
    if len(specs) not in (1, len(sites)):
        raise ValueError(f"berlu: the run names {len(specs)} activations, and the model has {len(sites)} sites")
    for (name, mlp), spec in zip(sites, specs * len(sites)):
        learned = [
            tensors[key] for key in (f"{name}.act.alpha", f"{name}.act.eps", f"{name}.act.beta") if key in tensors
        ]
        channels = learned[0].numel() if learned and learned[0].numel() > 1 else None
        setattr(mlp, "act", Act(spec, channels=channels, dim=1 if isinstance(mlp.fc1, nn.Conv2d) else -1))


def _three(text: Any) -> Optional[Tuple[float, ...]]:
    numbers = tuple(float(part) for part in str(text).split(",")) if text else ()
    return numbers if len(numbers) == 3 else None


def _config(model: nn.Module, settings: Dict[str, Any]) -> Dict[str, Any]:
    """timm's description of a model, which timm.data makes the transforms of: of this run, not of
    the weights that timm publishes under the name."""
    published = ("url", "hf_hub_id", "hf_hub_filename", "file", "tag", "custom_load", "license", "test_input_size")
    config = {key: value for key, value in getattr(model, "pretrained_cfg").items() if key not in published}
    mean, std = _three(settings.get("mean")), _three(settings.get("std"))
    if mean and std:
        config.update(mean=mean, std=std)
    if settings.get("image_size"):
        config["input_size"] = (3, int(settings["image_size"]), int(settings["image_size"]))
    squashed = settings.get("eval_crop") == "squash"
    config["crop_mode"], config["crop_pct"] = "squash" if squashed else "center", float(settings.get("crop_pct") or 1)
    config["interpolation"] = "bilinear" if settings.get("interpolation") == "bilinear" else "bicubic"
    config["num_classes"] = getattr(model, "num_classes")
    return config


def load(run: Union[str, "os.PathLike[str]"], which: str = "last") -> nn.Module:
    """The model of a run folder of `berlu train` as a timm model in evaluation mode: its weights,
    its activation, and in `pretrained_cfg` its classes and how its images are prepared. which: "last",
    "best" or "ema" (averaged weights). A folder of `berlu export timm` is loaded, too.

    >>> import berlu.timm
    >>> berlu.timm.load("runs/first")               # a folder of `berlu train`; here there is none
    Traceback (most recent call last):
    ValueError: berlu: runs/first is no run folder: ...
    """
    folder = pathlib.Path(run)
    if (folder / "config.json").exists() and not (folder / "run.json").exists():
        loaded: nn.Module = timm.create_model(f"local-dir:{folder}", pretrained=True)
        return loaded.eval()
    settings = _settings(folder)
    path = _checkpoint(folder, which)
    try:
        tensors = load_file(path)
        with safe_open(path, "pt") as file:
            named = (file.metadata() or {}).get("activation")
    except (OSError, SafetensorError) as error:
        raise ValueError(f"berlu: {folder} has no whole checkpoint '{which}': {path}: {error}") from None
    given = settings.get("act", "gelu")
    specs = [given] if isinstance(given, str) else list(given)
    specs = [named] if named and len(specs) == 1 else specs
    call, arguments = _arguments(settings, tensors)
    model: nn.Module = timm.create_model(call, **arguments)
    _set_activations(model, specs, tensors)
    try:
        model.load_state_dict(tensors, strict=True)
    except RuntimeError as error:
        raise ValueError(f"berlu: {path} does not fit {settings['model']}: {error}") from None
    config = _config(model, settings)
    setattr(model, "pretrained_cfg", config)
    setattr(model, "default_cfg", config)
    return model.eval()


def _named(place: str, module: nn.Module) -> str:
    """The spec of an activation; ValueError for one that a file cannot name, because `berlu eval` would
    take it for GELU."""
    if isinstance(module, Act):
        return module.spec
    kind = "gelu_tanh" if getattr(module, "approximate", "none") == "tanh" else kind_of(module)
    if kind not in names() or make_act(kind).parameters:
        raise ValueError(
            f"berlu: the activation of '{place}' is {module}, which the file cannot name; "
            "berlu.torch.replace_activations() makes it one of berlu"
        )
    return kind


def save(model: nn.Module, file: Union[str, "os.PathLike[str]"]) -> None:
    """Writes a timm model's weights for `berlu eval MODEL --weights FILE` and `berlu forward`; the
    activations are in the metadata, as one where all are the same. Written under another name first,
    so that a failure leaves no half file.

    >>> import berlu.timm, os, tempfile, timm
    >>> model = timm.create_model("vit_tiny_patch16_224", act_layer="berlu", img_size=32, patch_size=4, num_classes=10)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     berlu.timm.save(model, folder + "/weights.safetensors")
    ...     os.listdir(folder)
    ['weights.safetensors']
    """
    check_model(model)
    target = writable(file)
    specs = [_named(f"{name}.act", getattr(mlp, "act")) for name, mlp in _mlps(model)]
    lines = "\n".join(specs if len(set(specs)) > 1 else specs[:1])
    metadata = {"format": "pt", **({"activation": lines} if lines else {})}
    tensors = {}
    for name, tensor in model.state_dict().items():  # the format holds none that share memory, as shared activations do
        tensors[name] = tensor.detach().cpu().clone(memory_format=torch.contiguous_format)
    with written(target) as part:
        try:
            save_file(tensors, part, metadata)
        except SafetensorError as error:  # its way to say that the disk is full
            raise OSError(str(error)) from None
