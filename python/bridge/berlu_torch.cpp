/* berlu_torch.cpp - the activations as PyTorch operators for CPU and CUDA.
 * SPDX-License-Identifier: MIT
 *
 *     forward(x, p, q, spec, dim) -> y
 *     backward(dy, x, p, q, spec, dim, need_p, need_q) -> (dx, dp, dq)
 *     backward_from_output(dy, y, p, q, spec, dim, need_p, need_q) -> (dx, dp, dq)
 *
 * and each again with the ending _raw: the same kernel under a name that Python gives no
 * derivative. That costs half of a call less, so it is what the derivatives themselves call, eager
 * and compiled. A gradient that is not wanted is None.
 *
 * p and q are the activation's parameters number 0 and 1 (None: the value of the spec), f32, one
 * number or one per channel of dimension `dim`. Outputs are laid out as torch.empty_like(x) does
 * it: a dense x keeps its strides, whatever their order; then channel c of an element at offset
 * o is o / stride[dim] mod size[dim], which berlu_act_call.inner describes, so no layout
 * needs a transpose. Another x is copied once. Threads are torch's, and so are streams, devices
 * and memory; nothing waits. Errors are C++ exceptions: a boxed kernel has no other way to
 * report one, and torch makes them RuntimeErrors. berlu_torch_register() is called once by
 * Python; libberlu_cuda is opened by berlu_torch_register_cuda(). */
#include <berlu/berlu.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "shim.h"

Shim shim;

namespace {

int32_t dtype_f32, dtype_bf16, dtype_f16, device_cuda;

using CudaRun = berlu_status (*)(const berlu_act *, berlu_act_op, const berlu_act_call *, void *);
using CudaWorkspace = size_t (*)(const berlu_act *, berlu_act_op, const berlu_act_call *);
CudaRun cuda_run;
CudaWorkspace cuda_workspace;

[[noreturn]] void fail(const std::string &text)
{
    throw std::runtime_error("berlu: " + text);
}

/* ---- Activations by their spec ----------------------------------------------------------------------------------------- */

using Act = std::shared_ptr<const berlu_act>;

Act make_act(const std::string &spec)
{
    enum { MOST = 1024 }; /* a program that makes specs without end shall not grow without end */
    static std::mutex lock;
    static std::unordered_map<std::string, Act> known;
    std::lock_guard<std::mutex> guard(lock);
    auto found = known.find(spec);
    if (found != known.end())
        return found->second;
    berlu_act *made;
    if (berlu_act_make(&made, spec.c_str()) != BERLU_OK)
        fail(berlu_last_error());
    if (known.size() >= MOST)
        known.clear();
    return known[spec] = Act(made, [](const berlu_act *act) { berlu_act_free(const_cast<berlu_act *>(act)); });
}

/* Lives until the next call of this thread. A network has one spec mostly, so the last one is
 * compared first. */
const berlu_act *find_act(StableIValue value)
{
    thread_local std::string last;
    thread_local Act act;
    Text spec(value);
    if (!act || last != spec.get()) {
        Act made = make_act(spec.get());
        act.reset(); /* whichever of these fails, no other spec's activation stays */
        last = spec.get();
        act = std::move(made);
    }
    return act.get();
}

/* ---- Layout ------------------------------------------------------------------------------------------------------------ */

/* Whether the elements fill one range of memory without holes and without sharing, in any order
 * of the dimensions. */
bool is_dense(const Tensor &x)
{
    if (x.contiguous() || x.numel() == 0)
        return true;
    const int64_t *sizes = x.sizes(), *strides = x.strides();
    std::vector<std::pair<int64_t, int64_t>> dims; /* stride, size */
    for (int64_t d = 0; d < x.dim(); d++)
        if (sizes[d] > 1)
            dims.emplace_back(strides[d], sizes[d]);
    std::sort(dims.begin(), dims.end());
    int64_t expected = 1;
    for (auto [stride, size] : dims) {
        if (stride != expected)
            return false;
        expected *= size;
    }
    return true;
}

Tensor empty_as(const Tensor &like)
{
    AtenTensorHandle made;
    need(shim.aoti_torch_empty_strided(like.dim(), like.sizes(), like.strides(), like.dtype(), like.device_type(),
                                       like.device_index(), &made),
         "empty_strided");
    return Tensor(made);
}

/* None in Python. */
Tensor undefined()
{
    AtenTensorHandle made;
    need(shim.aoti_torch_new_uninitialized_tensor(&made), "new_uninitialized_tensor");
    return Tensor(made);
}

/* A clone of what is not dense has the strides of torch.empty_like(). */
Tensor dense(Tensor x)
{
    if (is_dense(x))
        return x;
    AtenTensorHandle copy;
    need(shim.aoti_torch_clone(x.get(), &copy), "clone");
    return Tensor(copy);
}

bool same_place(const Tensor &a, const Tensor &b)
{
    return a.device_type() == b.device_type() && a.device_index() == b.device_index();
}

/* `a` with the layout of `like`: itself, or a copy. */
Tensor laid_as(Tensor a, const Tensor &like, const char *name)
{
    int64_t dim = like.dim();
    if (a.dim() != dim || !std::equal(a.sizes(), a.sizes() + dim, like.sizes()))
        fail(std::string("the shape of ") + name + " is not that of x");
    if (a.dtype() != like.dtype() || !same_place(a, like))
        fail(std::string("the dtype or the device of ") + name + " is not that of x");
    bool same = true;
    for (int64_t d = 0; d < dim; d++)
        same = same && (like.sizes()[d] < 2 || a.strides()[d] == like.strides()[d]);
    if (same || a.numel() == 0)
        return a;
    Tensor copy = empty_as(like);
    need(shim.aoti_torch_copy_(copy.get(), a.get(), 0), "copy_");
    return copy;
}

/* ---- A call ------------------------------------------------------------------------------------------------------------ */

berlu_dtype storage_of(const Tensor &x)
{
    int32_t dtype = x.dtype();
    if (dtype == dtype_f32)
        return BERLU_F32;
    if (dtype == dtype_bf16)
        return BERLU_BF16;
    if (dtype == dtype_f16)
        return BERLU_F16;
    fail("x must be float32, bfloat16 or float16");
}

/* Enters a parameter and returns how many channels it has, 1 for the layer. */
int64_t set_param(berlu_act_call &call, int index, const Tensor &p, const Tensor &x)
{
    if (!p)
        return 1;
    if (p.dtype() != dtype_f32 || !p.contiguous())
        fail("a parameter must be float32 and contiguous");
    if (!same_place(p, x))
        fail("a parameter lies on another device than x");
    call.param[index].value = (const float *)p.data();
    call.param[index].stride = p.numel() > 1;
    return p.numel();
}

void set_channels(berlu_act_call &call, const Tensor &x, int64_t channels, int64_t dim)
{
    int64_t count = x.numel();
    call.rows = (size_t)count;
    call.channels = 1;
    if (channels == 1)
        return;
    int64_t at = dim < 0 ? dim + x.dim() : dim;
    if (at < 0 || at >= x.dim() || x.sizes()[at] != channels)
        fail("there are " + std::to_string(channels) + " channels, and dimension " + std::to_string(dim) +
             " of x has another size");
    call.channels = (size_t)channels;
    call.inner = count ? (size_t)x.strides()[at] : 1;
    call.rows = (size_t)count / ((size_t)channels * call.inner);
}

/* The parameters and the shape; x is dense. */
void set_call(berlu_act_call &call, const Tensor &x, const Tensor &p, const Tensor &q, int64_t dim)
{
    call.dtype = storage_of(x);
    int64_t first = set_param(call, 0, p, x), second = set_param(call, 1, q, x);
    if (first > 1 && second > 1 && first != second)
        fail("the parameters have " + std::to_string(first) + " and " + std::to_string(second) + " channels");
    set_channels(call, x, first > 1 ? first : second, dim);
}

void run_cpu(const berlu_act *act, berlu_act_op op, berlu_act_call &call)
{
    alignas(64) char small[4096];
    std::unique_ptr<char[]> large;
    uint32_t threads = 1;
    call.workspace_bytes = berlu_act_workspace(act, op, &call);
    call.workspace = small;
    if (call.workspace_bytes > sizeof small) {
        large.reset(new char[call.workspace_bytes]);
        call.workspace = large.get();
    }
    need(shim.torch_get_num_threads(&threads), "get_num_threads");
    berlu_exec exec = {BERLU_ISA_BEST, (int)threads};
    if (berlu_act_run(act, op, &call, &exec) != BERLU_OK)
        fail(berlu_last_error());
}

class DeviceGuard {
  public:
    explicit DeviceGuard(int32_t index) { need(shim.aoti_torch_create_device_guard(index, &handle), "device guard"); }
    DeviceGuard(const DeviceGuard &) = delete;
    DeviceGuard &operator=(const DeviceGuard &) = delete;
    ~DeviceGuard() { shim.aoti_torch_delete_device_guard(handle); }

  private:
    DeviceGuardHandle handle = nullptr;
};

/* Bytes of torch's allocator on the current device and stream, without a tensor around them. They
 * go back while the kernel may still run: they are given out again on the same stream. */
class Space {
  public:
    explicit Space(size_t bytes)
    {
        if (bytes)
            need(shim.aoti_torch_cuda_caching_allocator_raw_alloc(bytes, &start), "allocator");
    }
    Space(const Space &) = delete;
    Space &operator=(const Space &) = delete;
    ~Space()
    {
        if (start)
            shim.aoti_torch_cuda_caching_allocator_raw_delete(start);
    }
    void *get() const { return start; }

  private:
    void *start = nullptr;
};

void run_cuda(const berlu_act *act, berlu_act_op op, berlu_act_call &call, const Tensor &x)
{
    void *stream;
    DeviceGuard guard(x.device_index());
    need(shim.aoti_torch_get_current_cuda_stream(x.device_index(), &stream), "current stream");
    call.workspace_bytes = cuda_workspace(act, op, &call);
    Space space(call.workspace_bytes);
    call.workspace = space.get();
    if (cuda_run(act, op, &call, stream) != BERLU_OK)
        fail(berlu_last_error());
}

void run(const berlu_act *act, berlu_act_op op, berlu_act_call &call, const Tensor &x)
{
    if (x.device_type() == device_cuda)
        run_cuda(act, op, call, x);
    else
        run_cpu(act, op, call);
}

/* ---- The operators ----------------------------------------------------------------------------------------------------- */

void forward(StableIValue *stack, uint64_t, uint64_t)
{
    Tensor x = take_tensor(stack[0]), p = take_optional(stack[1]), q = take_optional(stack[2]);
    const berlu_act *act = find_act(stack[3]);
    berlu_act_call call = {};
    x = dense(std::move(x));
    Tensor y = empty_as(x);
    set_call(call, x, p, q, (int64_t)stack[4]);
    call.x = x.data();
    call.y = y.data();
    run(act, BERLU_ACT_FORWARD, call, x);
    stack[0] = y.release();
}

/* The gradient of a parameter: like it where it is wanted, else undefined. */
Tensor set_grad(berlu_act_call &call, int index, bool wanted, const Tensor &p)
{
    if (!wanted)
        return undefined();
    if (!p)
        fail("the gradient of a parameter that was not given is wanted");
    Tensor grad = empty_as(p);
    call.param[index].grad = (float *)grad.data();
    return grad;
}

/* `known` is x, or y for the derivative computed from the output. */
void backward_from(berlu_act_op op, StableIValue *stack)
{
    Tensor dy = take_tensor(stack[0]), known = take_tensor(stack[1]);
    Tensor p = take_optional(stack[2]), q = take_optional(stack[3]);
    const berlu_act *act = find_act(stack[4]);
    berlu_act_call call = {};
    known = dense(std::move(known));
    Tensor dx = empty_as(known);
    dy = laid_as(std::move(dy), known, "dy");
    set_call(call, known, p, q, (int64_t)stack[5]);
    Tensor dp = set_grad(call, 0, stack[6] & 1, p), dq = set_grad(call, 1, stack[7] & 1, q);
    if (op == BERLU_ACT_BACKWARD)
        call.x = known.data();
    else
        call.y = known.data();
    call.dy = dy.data();
    call.dx = dx.data();
    run(act, op, call, known);
    stack[0] = dx.release();
    stack[1] = dp.release();
    stack[2] = dq.release();
}

void backward(StableIValue *stack, uint64_t, uint64_t)
{
    backward_from(BERLU_ACT_BACKWARD, stack);
}

void backward_from_output(StableIValue *stack, uint64_t, uint64_t)
{
    backward_from(BERLU_ACT_BACKWARD_FROM_OUTPUT, stack);
}

const struct {
    const char *name, *arguments; /* and results */
    void (*kernel)(StableIValue *, uint64_t, uint64_t);
} operators[] = {
#define BACKWARD_TAIL                                                                                                  \
    ", Tensor? p, Tensor? q, str spec, int dim, bool need_p, bool need_q) -> (Tensor, Tensor, Tensor)"
    {"forward", "(Tensor x, Tensor? p, Tensor? q, str spec, int dim) -> Tensor", forward},
    {"backward", "(Tensor dy, Tensor x" BACKWARD_TAIL, backward},
    {"backward_from_output", "(Tensor dy, Tensor y" BACKWARD_TAIL, backward_from_output},
#undef BACKWARD_TAIL
};
const char *const endings[] = {"", "_raw"};

const char *implement(const char *key)
{
    TorchLibraryHandle library; /* lives as long as the process, like the operators */
    bool refused = shim.aoti_torch_library_init_impl("berlu", key, __FILE__, __LINE__, &library);
    for (auto &op : operators)
        for (auto ending : endings)
            refused = refused || shim.torch_library_impl(library, (std::string(op.name) + ending).c_str(), op.kernel,
                                                         shim_version);
    return refused ? "torch refused the implementation of the operators" : nullptr;
}

const char *define()
{
    TorchLibraryHandle library;
    bool refused = shim.aoti_torch_library_init_def("berlu", __FILE__, __LINE__, &library);
    for (auto &op : operators)
        for (auto ending : endings)
            refused =
                refused || shim.aoti_torch_library_def(library, (std::string(op.name) + ending + op.arguments).c_str());
    return refused ? "torch refused the definition of the operators" : nullptr;
}

} // namespace

extern "C" {

/** Finds the shim in the libtorch_cpu.so that is loaded, and registers the operators for the
 * CPU. NULL: done; else why not. */
BERLU_API const char *berlu_torch_register(const char *libtorch_cpu)
{
    void *library = dlopen(libtorch_cpu, RTLD_LAZY | RTLD_NOLOAD);
    if (!library)
        return "libtorch_cpu.so is not where torch's own folder has it";
#define SHIM(result, name, arguments)                                                                                  \
    if (!(shim.name = (result(*) arguments)dlsym(library, #name)))                                                     \
        return "this torch has no " #name ", which 2.10 and later have";
#define SHIM_CUDA(result, name, arguments)
#include "shim.inc"
#undef SHIM
#undef SHIM_CUDA
    dtype_f32 = shim.aoti_torch_dtype_float32();
    dtype_bf16 = shim.aoti_torch_dtype_bfloat16();
    dtype_f16 = shim.aoti_torch_dtype_float16();
    device_cuda = shim.aoti_torch_device_type_cuda();
    const char *fault = define();
    return fault ? fault : implement("CPU");
}

/** The same for CUDA, after berlu_torch_register(): opens libberlu_cuda and torch's CUDA half. */
BERLU_API const char *berlu_torch_register_cuda(const char *libtorch_cuda, const char *libberlu_cuda)
{
    void *torch = dlopen(libtorch_cuda, RTLD_LAZY | RTLD_NOLOAD);
    if (!torch)
        return "libtorch_cuda.so is not loaded";
#define SHIM(result, name, arguments)
#define SHIM_CUDA(result, name, arguments)                                                                             \
    if (!(shim.name = (result(*) arguments)dlsym(torch, #name)))                                                       \
        return "this torch has no " #name ", which 2.10 and later have";
#include "shim.inc"
#undef SHIM
#undef SHIM_CUDA
    void *library = dlopen(libberlu_cuda, RTLD_NOW);
    if (!library)
        return dlerror();
    cuda_run = (CudaRun)dlsym(library, "berlu_act_cuda_run_here");
    cuda_workspace = (CudaWorkspace)dlsym(library, "berlu_act_cuda_workspace");
    if (!cuda_run || !cuda_workspace)
        return "libberlu_cuda lacks its calls: it is of another version";
    return implement("CUDA");
}
}
