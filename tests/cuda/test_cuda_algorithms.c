/* test_cuda_algorithms.c - how product algorithms are chosen, kept and refused.
 * SPDX-License-Identifier: MIT
 *
 * Over the GPU made of malloc (stub.h), where algorithm i takes stub.cost[i] seconds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda/algorithms.h"
#include "cuda/cuda.h"
#include "cuda/gemm.h"
#include "cuda/stub.h"
#include "support/fail.h"
#include "support/folder.h"

static char folder[FOLDER_PATH], cache[FOLDER_PATH];

static int machine_new(void **state)
{
    (void)state;
    setenv("XDG_CACHE_HOME", folder_fresh(folder, "cuda_algorithms"), 1);
    folder_path(cache, folder, "berlu/algorithms.txt");
    stub_reset();
    return 0;
}

/* One layer of the given width on a fresh device; returns what run() said. Twice the same call
 * gives one choice. */
static berlu_status layer_run(const char *algorithms, int64_t width, char **record)
{
    static const tensor_info info = {.rank = 2};
    static _Alignas(256) float memory[4][4096];
    device *d = NULL;
    program *p = NULL;
    berlu_status status = cuda_backend()->open(&d, cuda_backend(), &(device_options){.algorithms = algorithms});
    if (status != BERLU_OK)
        return status;
    op_call call[2] = {{.op = OP_LINEAR, .device = d, .batch = 1}};
    call[0].in[0] = (op_operand){.data = memory[0], .rows = 2, .channels = width, .info = &info};
    call[0].in[1] = (op_operand){.data = memory[1], .rows = 3, .channels = width, .info = &info};
    call[0].out[0] = (op_operand){.data = memory[2], .rows = 2, .channels = 3, .info = &info};
    call[1] = call[0];
    assert_int_equal(cuda_backend()->prepare(d, &p, call, 2, &(program_options){0}), BERLU_OK);
    status = cuda_backend()->run(p);
    text out = {0};
    assert_int_equal(cuda_algorithms_text(d, &out), BERLU_OK);
    if (record)
        *record = out.data;
    else
        text_free(&out);
    cuda_backend()->program_free(p);
    cuda_backend()->close(d);
    assert_int_equal(stub.allocations, 0);
    return status;
}

static int first_byte(const char *record, const char *shape)
{
    const char *line = strstr(record, shape);
    int byte = -1;
    assert_non_null(line);
    assert_int_equal(sscanf(strrchr(line, '|') + 1, "%2x", (unsigned *)&byte), 1);
    return byte;
}

static void the_fastest_is_taken_and_found_again_without_timing(void **state)
{
    (void)state;
    char *record = NULL, *again = NULL;
    assert_int_equal(layer_run(NULL, 5, &record), BERLU_OK);
    assert_int_equal(first_byte(record, "3x2x5 tn f32>f32|"), 1);
    assert_non_null(strstr(record, "\nStub GPU, 7 processors|13.1.0|"));
    int timed = stub.products;
    assert_true(timed > 2);
    stub.cost[0] = 0; /* another day, another winner: nobody asks */
    stub.products = 0;
    assert_int_equal(layer_run(NULL, 5, &again), BERLU_OK);
    assert_int_equal(stub.products, 2);
    assert_string_equal(record, again);
    stub.products = 0;
    assert_int_equal(layer_run("new", 5, NULL), BERLU_OK);
    assert_int_equal(stub.products, timed);
    free(again);
    assert_int_equal(layer_run(NULL, 5, &again), BERLU_OK);
    assert_int_equal(first_byte(again, "3x2x5"), 0); /* the new choice replaced the old one */
    free(record);
    free(again);
}

static void first_takes_the_first_and_writes_nothing(void **state)
{
    (void)state;
    char *record = NULL;
    assert_int_equal(layer_run("first", 5, &record), BERLU_OK);
    assert_int_equal(first_byte(record, "3x2x5"), 0);
    assert_int_equal(stub.products, 2);
    assert_false(file_exists(cache));
    free(record);
}

static void a_named_file_is_taken_as_it_is_and_grows(void **state)
{
    (void)state;
    char path[FOLDER_PATH], *record = NULL;
    folder_path(path, folder, "mine.txt");
    assert_int_equal(layer_run(path, 5, &record), BERLU_OK);
    free(record);
    assert_int_equal(layer_run(path, 6, &record), BERLU_OK);
    free(record);
    algorithm_list list = {0};
    assert_int_equal(algorithms_read(&list, path), BERLU_OK);
    assert_int_equal(list.count, 2);
    algorithms_free(&list);
    assert_false(file_exists(cache));
}

static void the_text_of_a_run_is_a_file_for_the_next(void **state)
{
    (void)state;
    char path[FOLDER_PATH], *record = NULL, *again = NULL;
    assert_int_equal(layer_run(NULL, 5, &record), BERLU_OK);
    assert_int_equal(file_write_atomic(folder_path(path, folder, "run.txt"), record, strlen(record)), BERLU_OK);
    stub.cost[0] = 0;
    assert_int_equal(layer_run(path, 5, &again), BERLU_OK);
    assert_string_equal(record, again);
    free(record);
    free(again);
}

static void a_record_of_another_version_is_refused_where_it_was_named(void **state)
{
    (void)state;
    char path[FOLDER_PATH];
    folder_path(path, folder, "mine.txt");
    assert_int_equal(layer_run(path, 5, NULL), BERLU_OK);
    stub.version = "13.2.0";
    assert_int_equal(layer_run(path, 5, NULL), BERLU_ERR_UNSUPPORTED);
    assert_non_null(strstr(berlu_last_error(), "cuBLASLt 13.1.0"));
    assert_non_null(strstr(berlu_last_error(), "cuBLASLt 13.2.0"));
    assert_non_null(strstr(berlu_last_error(), "--algorithms new"));
    assert_int_equal(layer_run(NULL, 5, NULL), BERLU_OK); /* a cache only lacks it */
    stub.version = "13.1.0";
    stub.refused = 2; /* the one that was chosen */
    assert_int_equal(layer_run(path, 5, NULL), BERLU_ERR_UNSUPPORTED);
}

static void a_residual_in_place_survives_the_search(void **state)
{
    (void)state;
    static const tensor_info info = {.rank = 2};
    static _Alignas(256) float x[2] = {1, 2}, w[2] = {3, 5}, y[2] = {10, 20};
    device *d = NULL;
    program *p = NULL;
    assert_int_equal(cuda_backend()->open(&d, cuda_backend(), &(device_options){0}), BERLU_OK);
    op_call call = {.op = OP_LINEAR, .device = d, .batch = 1};
    call.in[0] = (op_operand){.data = x, .rows = 2, .channels = 1, .info = &info};
    call.in[1] = (op_operand){.data = w, .rows = 1, .channels = 1, .info = &info};
    call.in[3] = (op_operand){.data = y, .rows = 2, .channels = 1, .info = &info};
    call.out[0] = call.in[3];
    assert_int_equal(cuda_backend()->prepare(d, &p, &call, 1, &(program_options){0}), BERLU_OK);
    assert_int_equal(cuda_backend()->run(p), BERLU_OK);
    assert_true(stub.products > 10);
    assert_true(y[0] == 13 && y[1] == 26);
    cuda_backend()->program_free(p);
    cuda_backend()->close(d);
}

static void a_broken_cache_is_an_empty_one_and_a_broken_file_is_an_error(void **state)
{
    (void)state;
    char path[FOLDER_PATH], parent[FOLDER_PATH];
    assert_int_equal(folder_make(folder_path(parent, folder, "berlu")), BERLU_OK);
    assert_int_equal(file_write_atomic(cache, "rubbish\n", 8), BERLU_OK);
    assert_int_equal(layer_run(NULL, 5, NULL), BERLU_OK);
    algorithm_list list = {0};
    assert_int_equal(algorithms_read(&list, cache), BERLU_OK); /* it was replaced */
    assert_int_equal(list.count, 1);
    algorithms_free(&list);
    assert_int_equal(file_write_atomic(folder_path(path, folder, "mine.txt"), "rubbish\n", 8), BERLU_OK);
    assert_int_equal(layer_run(path, 5, NULL), BERLU_ERR_INPUT);
    assert_non_null(strstr(berlu_last_error(), "mine.txt: line 1"));
}

static void malformed_lines_are_named_by_number(void **state)
{
    (void)state;
#define HEADING "berlu cuBLASLt algorithms 1\n"
    static const char *const texts[] = {"", "x", HEADING "a|b|c", HEADING "a|b|c|00", HEADING "||c|00", HEADING "\n"};
    static const char *const words[] = {"empty", "line 1", "line 2", "line 2", "line 2", "line 2"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        algorithm_list list = {0};
        assert_int_equal(algorithms_parse(&list, texts[i], strlen(texts[i]), "file"), BERLU_ERR_INPUT);
        assert_non_null(strstr(berlu_last_error(), words[i]));
        algorithms_free(&list);
    }
    algorithm_list list = {0};
    assert_int_equal(algorithms_parse(&list, HEADING "a\0b", sizeof HEADING + 2, "file"), BERLU_ERR_INPUT);
    algorithms_free(&list);
}

static void a_cache_that_cannot_be_written_stops_nothing_and_a_file_does(void **state)
{
    (void)state;
    char path[FOLDER_PATH];
    folder_path(path, folder, "no/such/folder/mine.txt");
    assert_int_equal(layer_run(path, 5, NULL), BERLU_ERR_IO);
    fail_from(FAIL_WRITE, 1);
    berlu_status status = layer_run(NULL, 5, NULL);
    fail_hit();
    assert_int_equal(status, BERLU_OK);
}

static void no_allocation_that_fails_loses_a_record(void **state)
{
    (void)state;
    lt_algorithm a = {.bytes = {1, 2, 3}};
    algorithm_list list = {0};
    berlu_status status;
    for (int n = 1; fail_after(FAIL_ALLOC, n), status = algorithms_set(&list, "m", "v", "s", &a), fail_hit(); n++)
        assert_int_equal(status, BERLU_ERR_MEMORY);
    assert_int_equal(list.count, 1);
    for (int n = 1; fail_after(FAIL_ALLOC, n), status = algorithms_write(&list, cache), fail_hit(); n++)
        assert_true(status == BERLU_ERR_MEMORY || status == BERLU_ERR_IO);
    algorithms_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_fastest_is_taken_and_found_again_without_timing, machine_new),
        cmocka_unit_test_setup(first_takes_the_first_and_writes_nothing, machine_new),
        cmocka_unit_test_setup(a_named_file_is_taken_as_it_is_and_grows, machine_new),
        cmocka_unit_test_setup(the_text_of_a_run_is_a_file_for_the_next, machine_new),
        cmocka_unit_test_setup(a_record_of_another_version_is_refused_where_it_was_named, machine_new),
        cmocka_unit_test_setup(a_residual_in_place_survives_the_search, machine_new),
        cmocka_unit_test_setup(a_broken_cache_is_an_empty_one_and_a_broken_file_is_an_error, machine_new),
        cmocka_unit_test_setup(malformed_lines_are_named_by_number, machine_new),
        cmocka_unit_test_setup(a_cache_that_cannot_be_written_stops_nothing_and_a_file_does, machine_new),
        cmocka_unit_test_setup(no_allocation_that_fails_loses_a_record, machine_new),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
