/* onnx.c - see onnx.h. SPDX-License-Identifier: MIT
 *
 * Field numbers are those of onnx.proto. Parts of a message are appended to texts with their own
 * keys, so that a graph is the concatenation of its texts, and a file of weights is written without
 * a second copy of them. */
#include "io/onnx.h"

#include <string.h>

#include <berlu/status.h>

#include "base/file.h"
#include "io/protobuf.h"

enum { MODEL_IR = 1, MODEL_PRODUCER = 2, MODEL_VERSION = 3, MODEL_GRAPH = 7, MODEL_OPSET = 8, MODEL_METADATA = 14 };
enum { MODEL_FUNCTION = 25 };
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
enum { NODE_INPUT = 1, NODE_OUTPUT = 2, NODE_OP = 4, NODE_ATTRIBUTE = 5, NODE_DOMAIN = 7 };
enum { ATTR_NAME = 1, ATTR_F = 2, ATTR_I = 3, ATTR_INTS = 8, ATTR_TYPE = 20 };
enum { TYPE_FLOAT = 1, TYPE_INT = 2, TYPE_INTS = 7 };
enum { TENSOR_DIMS = 1, TENSOR_TYPE = 2, TENSOR_NAME = 8, TENSOR_RAW = 9 };
enum { DATA_FLOAT = 1, DATA_INT64 = 7 };
enum { FUNCTION_NAME = 1, FUNCTION_INPUT = 4, FUNCTION_OUTPUT = 5, FUNCTION_NODE = 7, FUNCTION_OPSET = 9 };
enum { FUNCTION_DOMAIN = 10 };

static const char *name_make(onnx_body *b, const char *kind)
{
    const char *name = arena_printf(&b->memory, "%s%d", kind, b->made++);
    b->nodes.failed |= !name;
    return name ? name : "";
}

static void attribute_add(text *node, const onnx_attr *a)
{
    text t = {0};
    pb_string(&t, ATTR_NAME, a->name);
    if (a->kind == ONNX_FLOAT)
        pb_float(&t, ATTR_F, a->f);
    if (a->kind == ONNX_INT)
        pb_varint(&t, ATTR_I, (uint64_t)a->i);
    for (size_t i = 0; a->kind == ONNX_INTS && i < a->count; i++)
        pb_varint(&t, ATTR_INTS, (uint64_t)a->ints[i]);
    pb_varint(&t, ATTR_TYPE, a->kind == ONNX_FLOAT ? TYPE_FLOAT : a->kind == ONNX_INT ? TYPE_INT : TYPE_INTS);
    pb_message(node, NODE_ATTRIBUTE, &t);
}

static void node_add(onnx_body *b, const char *op, const char *domain, const char *const *inputs, const char *output,
                     const onnx_attr *attributes)
{
    text t = {0};
    for (; inputs && *inputs; inputs++)
        pb_string(&t, NODE_INPUT, *inputs);
    pb_string(&t, NODE_OUTPUT, output);
    pb_string(&t, NODE_OP, op);
    for (; attributes && attributes->name; attributes++)
        attribute_add(&t, attributes);
    if (domain)
        pb_string(&t, NODE_DOMAIN, domain);
    pb_message(&b->nodes, b->function ? FUNCTION_NODE : GRAPH_NODE, &t);
}

const char *onnx_op(onnx_body *b, const char *op, const char *const *inputs, const onnx_attr *attributes)
{
    const char *output = name_make(b, "t");
    node_add(b, op, NULL, inputs, output, attributes);
    return output;
}

const char *onnx_call(onnx_body *b, const char *function, const char *const *inputs)
{
    const char *output = name_make(b, "t");
    node_add(b, function, ONNX_DOMAIN, inputs, output, NULL);
    return output;
}

void onnx_name(onnx_body *b, const char *from, const char *to)
{
    node_add(b, "Identity", NULL, ONNX_IN(from), to, NULL);
}

static void initializer_add(onnx_body *b, const char *name, int type, const int64_t *size, int rank, const void *values,
                            size_t bytes)
{
    text t = {0};
    for (int i = 0; i < rank; i++)
        pb_varint(&t, TENSOR_DIMS, (uint64_t)size[i]);
    pb_varint(&t, TENSOR_TYPE, (uint64_t)type);
    pb_string(&t, TENSOR_NAME, name);
    pb_bytes(&t, TENSOR_RAW, values, bytes); /* little-endian, as every machine here is (packed_format.h) */
    pb_message(&b->initializers, GRAPH_INITIALIZER, &t);
}

const char *onnx_scalar(onnx_body *b, double value)
{
    float f = (float)value;
    if (b->function)
        return onnx_op(b, "Constant", NULL, ONNX_ATTR({.name = "value_float", .kind = ONNX_FLOAT, .f = f}));
    const char *name = name_make(b, "c");
    initializer_add(b, name, DATA_FLOAT, NULL, 0, &f, sizeof f);
    return name;
}

const char *onnx_integers(onnx_body *b, const int64_t *values, size_t count)
{
    const char *name = name_make(b, "i");
    initializer_add(b, name, DATA_INT64, &(int64_t){(int64_t)count}, 1, values, count * sizeof *values);
    return name;
}

const char *onnx_tensor(onnx_body *b, const char *name, const float *values, const int64_t *size, int rank)
{
    size_t count = 1;
    for (int i = 0; i < rank; i++)
        count *= (size_t)size[i];
    initializer_add(b, name, DATA_FLOAT, size, rank, values, count * sizeof *values);
    return name;
}

static void opset_add(text *out, int field, const char *domain, uint64_t version)
{
    text t = {0};
    pb_string(&t, 1, domain);
    pb_varint(&t, 2, version);
    pb_message(out, field, &t);
}

void onnx_function(text *functions, const char *name, const char *const *inputs, const char *output,
                   const onnx_body *body)
{
    text t = {0};
    pb_string(&t, FUNCTION_NAME, name);
    for (; *inputs; inputs++)
        pb_string(&t, FUNCTION_INPUT, *inputs);
    pb_string(&t, FUNCTION_OUTPUT, output);
    text_bytes(&t, body->nodes.data, body->nodes.length);
    t.failed |= body->nodes.failed;
    opset_add(&t, FUNCTION_OPSET, "", ONNX_OPSET);
    pb_string(&t, FUNCTION_DOMAIN, ONNX_DOMAIN);
    pb_message(functions, MODEL_FUNCTION, &t);
}

/* ---- the file -------------------------------------------------------------------------------- */

static void port_add(text *out, int field, const onnx_port *p)
{
    text shape = {0}, dim = {0}, tensor = {0}, type = {0}, info = {0};
    pb_string(&dim, 2, "batch");
    pb_message(&shape, 1, &dim);
    for (int i = 0; i < p->rank; i++) {
        dim = (text){0};
        pb_varint(&dim, 1, (uint64_t)p->size[i]);
        pb_message(&shape, 1, &dim);
    }
    pb_varint(&tensor, 1, DATA_FLOAT);
    pb_message(&tensor, 2, &shape);
    pb_message(&type, 1, &tensor);
    pb_string(&info, 1, p->name);
    pb_message(&info, 2, &type);
    pb_message(out, field, &info);
}

static void model_end(text *out, const onnx_model *m)
{
    opset_add(out, MODEL_OPSET, "", ONNX_OPSET);
    if (m->functions && m->functions->length)
        opset_add(out, MODEL_OPSET, ONNX_DOMAIN, 1);
    for (size_t i = 0; i < m->texts; i++) {
        text t = {0};
        pb_string(&t, 1, m->metadata[i].key);
        pb_string(&t, 2, m->metadata[i].value);
        pb_message(out, MODEL_METADATA, &t);
    }
}

static berlu_status parts_write(const char *path, const text *const *parts, size_t count)
{
    file_out *file = NULL;
    berlu_status status = BERLU_OK;
    for (size_t i = 0; i < count; i++)
        TRY_DONE(text_status(parts[i]));
    TRY_DONE(file_out_open(&file, path));
    for (size_t i = 0; i < count; i++)
        if (parts[i]->length)
            TRY_DONE(file_out_write(file, parts[i]->data, parts[i]->length));
    return file_out_commit(file);
done:
    file_out_discard(file);
    return status;
}

berlu_status onnx_write(const char *path, const onnx_model *m)
{
    static const text none = {0};
    text head = {0}, ports = {0}, tail = {0};
    const text *nodes = &m->body->nodes, *weights = &m->body->initializers;
    pb_string(&ports, GRAPH_NAME, "network");
    port_add(&ports, GRAPH_INPUT, &m->input);
    port_add(&ports, GRAPH_OUTPUT, &m->output);
    pb_varint(&head, MODEL_IR, ONNX_IR);
    pb_string(&head, MODEL_PRODUCER, "berlu");
    pb_string(&head, MODEL_VERSION, berlu_version());
    pb_length(&head, MODEL_GRAPH, nodes->length + weights->length + ports.length);
    model_end(&tail, m);
    const text *parts[] = {&head, nodes, weights, &ports, &tail, m->functions ? m->functions : &none};
    berlu_status status = nodes->length + weights->length <= (size_t)2047 << 20
                              ? parts_write(path, parts, COUNT(parts))
                              : berlu_fail(BERLU_ERR_UNSUPPORTED,
                                           "%s: the network is larger than the 2 GiB that an ONNX file can hold", path);
    text_free(&head);
    text_free(&ports);
    text_free(&tail);
    return status;
}

void onnx_free(onnx_body *b)
{
    text_free(&b->nodes);
    text_free(&b->initializers);
    arena_free(&b->memory);
}
