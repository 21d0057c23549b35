"""The models of the berlu engine as timm builds them: timm's name and the arguments of
create_model(). SPDX-License-Identifier: MIT

The one list of that correspondence; tools/reference.py reads it too. Nothing of berlu is imported
here, so that it can.
"""

from typing import Any, Dict, Tuple

_CIFAR: Dict[str, Any] = dict(num_classes=10)
_VIT_MICRO: Dict[str, Any] = dict(img_size=32, patch_size=4, embed_dim=64, depth=4, num_heads=2, num_classes=10)
CALLS: Dict[str, Tuple[str, Dict[str, Any]]] = {
    "vit_tiny": ("vit_tiny_patch16_224", {}),
    "vit_small": ("vit_small_patch16_224", {}),
    "vit_base": ("vit_base_patch16_224", {}),
    "deit_tiny": ("deit_tiny_patch16_224", {}),
    "deit_small": ("deit_small_patch16_224", {}),
    "deit_tiny_distilled": ("deit_tiny_distilled_patch16_224", {}),
    "deit_small_distilled": ("deit_small_distilled_patch16_224", {}),
    "tnt_s": ("tnt_s_patch16_224", {}),
    "tnt_s_legacy": ("tnt_s_legacy_patch16_224", {}),
    **{f"convnext_{size}": (f"convnext_{size}", {}) for size in ("atto", "femto", "pico", "nano", "tiny")},
    "vit_tiny_cifar": ("vit_tiny_patch16_224", dict(img_size=32, patch_size=4, **_CIFAR)),
    "deit_tiny_cifar": ("deit_tiny_patch16_224", dict(img_size=32, patch_size=4, **_CIFAR)),
    "deit_tiny_distilled_cifar": ("deit_tiny_distilled_patch16_224", dict(img_size=32, patch_size=4, **_CIFAR)),
    "tnt_s_cifar": ("tnt_s_patch16_224", dict(img_size=32, patch_size=4, first_stride=1, **_CIFAR)),
    **{
        f"convnext_{size}_cifar": (f"convnext_{size}", dict(patch_size=1, **_CIFAR))
        for size in ("atto", "femto", "pico", "nano", "tiny")
    },
    "vit_micro": ("vit_tiny_patch16_224", _VIT_MICRO),
    "deit_micro": ("deit_tiny_distilled_patch16_224", _VIT_MICRO),
    "tnt_micro": (
        "tnt_s_patch16_224",
        dict(img_size=32, patch_size=4, first_stride=1, embed_dim=48, inner_dim=12, depth=2, **_CIFAR),
    ),
    "convnext_micro": ("convnext_atto", dict(patch_size=1, dims=(16, 32, 64, 128), depths=(1, 1, 2, 1), **_CIFAR)),
}
