/* shim.h - torch's stable C shim, declared by us and found at run time.
 * SPDX-License-Identifier: MIT
 *
 * The bridge is built without torch: no header, no library. One binary then serves every torch
 * that exports these functions (2.10 and later), where an extension against torch's C++
 * interface needs a build per version. Handles are opaque pointers; `Tensor` below owns one. A
 * StableIValue is 64 bits that hold a number, a handle, or for an optional a pointer to another
 * StableIValue made by `new` (which is why libstdc++ must be torch's own: the shared one). */
#ifndef BERLU_BRIDGE_SHIM_H
#define BERLU_BRIDGE_SHIM_H

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

using AOTITorchError = int32_t;
using StableIValue = uint64_t;
using AtenTensorHandle = struct AtenTensorOpaque *;
using TorchLibraryHandle = struct TorchLibraryOpaque *;
using StringHandle = struct StringOpaque *;
using DeviceGuardHandle = struct DeviceGuardOpaque *;

struct Shim {
#define SHIM(result, name, arguments) result(*name) arguments;
#define SHIM_CUDA SHIM
#include "shim.inc"
#undef SHIM
#undef SHIM_CUDA
};
extern Shim shim;

/** The version whose meaning of StableIValue we write: torch 2.10. */
constexpr uint64_t shim_version = (uint64_t)2 << 56 | (uint64_t)10 << 48;

/** The process that loaded this library; a child forked from it cannot use a GPU that its parent used. */
inline const pid_t loaded_by = getpid();

/** Not inlined: in each caller of need() it was a quarter of the library. */
[[noreturn, gnu::cold, gnu::noinline]] inline void throw_failed(const char *what)
{
    throw std::runtime_error(
        std::string("berlu: torch's ") + what + " failed" +
        (getpid() == loaded_by ? "" : "; a child forked after the GPU was used cannot use it: start it with spawn"));
}

inline void need(AOTITorchError failed, const char *what)
{
    if (failed)
        throw_failed(what);
}

/** A tensor that is freed with the variable; empty where an optional argument was None. */
class Tensor {
  public:
    Tensor() = default;
    explicit Tensor(AtenTensorHandle owned) : handle(owned) {}
    Tensor(Tensor &&other) noexcept : handle(std::exchange(other.handle, nullptr)) {}
    Tensor &operator=(Tensor &&other) noexcept
    {
        std::swap(handle, other.handle);
        return *this;
    }
    ~Tensor()
    {
        if (handle)
            shim.aoti_torch_delete_tensor_object(handle);
    }
    explicit operator bool() const { return handle; }
    AtenTensorHandle get() const { return handle; }
    StableIValue release() { return (StableIValue)std::exchange(handle, nullptr); }

    void *data() const { return ask(shim.aoti_torch_get_data_ptr, "get_data_ptr"); }
    int64_t numel() const { return ask(shim.aoti_torch_get_numel, "get_numel"); }
    int64_t dim() const { return ask(shim.aoti_torch_get_dim, "get_dim"); }
    const int64_t *sizes() const { return ask(shim.aoti_torch_get_sizes, "get_sizes"); }
    const int64_t *strides() const { return ask(shim.aoti_torch_get_strides, "get_strides"); }
    int32_t dtype() const { return ask(shim.aoti_torch_get_dtype, "get_dtype"); }
    int32_t device_type() const { return ask(shim.aoti_torch_get_device_type, "get_device_type"); }
    int32_t device_index() const { return ask(shim.aoti_torch_get_device_index, "get_device_index"); }
    bool contiguous() const { return ask(shim.aoti_torch_is_contiguous, "is_contiguous"); }

  private:
    template <class Value> Value ask(AOTITorchError (*question)(AtenTensorHandle, Value *), const char *what) const
    {
        Value value;
        need(question(handle, &value), what);
        return value;
    }
    AtenTensorHandle handle = nullptr;
};

/* ---- Arguments of a kernel: each is taken once, because the kernel owns what it is given --------------------------------- */

inline Tensor take_tensor(StableIValue value)
{
    return Tensor((AtenTensorHandle)value);
}

inline Tensor take_optional(StableIValue value)
{
    if (!value)
        return Tensor();
    StableIValue *inside = (StableIValue *)value;
    Tensor tensor((AtenTensorHandle)*inside);
    delete inside;
    return tensor;
}

class Text {
  public:
    explicit Text(StableIValue value) : handle((StringHandle)value) {}
    Text(const Text &) = delete;
    Text &operator=(const Text &) = delete;
    ~Text() { shim.torch_delete_string(handle); }
    const char *get() const
    {
        const char *text;
        need(shim.torch_string_c_str(handle, &text), "string_c_str");
        return text;
    }

  private:
    StringHandle handle;
};

#endif
