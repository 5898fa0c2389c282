"""What SGLang's PyPI wheels need on a machine without a GPU. Import it before `transformers` and `sglang`, in every process.

Two of the wheels hold code for CUDA alone. Nothing of it is reached by a plain dense model on the CPU, but it is named while modules load:
torchvision attaches Python parts to two operators that its library would have declared, SGLang imports names from `sgl_kernel`, and the
models that read images name four operators of it.
"""

import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

os.environ.setdefault("SGLANG_USE_CPU_ENGINE", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch


class _NoKernels(ModuleType):
    """`sgl_kernel` whose functions can be imported and not called: a call would mean that a result came from nowhere."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)

        def refuse(*_: object, **__: object) -> None:
            raise NotImplementedError(f"sgl_kernel.{name}: a GPU kernel was called, and the server runs on the CPU")

        return refuse


_operators = torch.library.Library("torchvision", "DEF")
for _name in ("nms", "qnms"):
    _operators.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

_cpu_operators = torch.library.Library("sgl_kernel", "DEF")
for _name in (
    "fused_sigmoid_mul_cpu",
    "fused_qk_gemma_rmsnorm_cpu",
    "fused_qk_gemma_rmsnorm_with_gate_cpu",
    "fused_qkvzba_split_reshape_cat_contiguous_cpu",
):
    _cpu_operators.define(f"{_name}(Tensor x) -> Tensor")  # declared and not defined: a call fails

_kernels = _NoKernels("sgl_kernel")
_kernels.__path__ = []
_kernels.__spec__ = ModuleSpec("sgl_kernel", None, is_package=True)
sys.modules["sgl_kernel"] = _kernels
