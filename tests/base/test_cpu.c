/* test_cpu.c - the choice of instruction set, and its override. SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"

static void names_parse_back(void **state)
{
    (void)state;
    for (int isa = CPU_BEST; isa < CPU_ISA_COUNT; isa++) {
        cpu_isa back;
        assert_int_equal(cpu_isa_parse(&back, cpu_isa_name((cpu_isa)isa)), BERLU_OK);
        assert_int_equal(back, isa);
    }
    cpu_isa untouched = CPU_SCALAR;
    assert_int_equal(cpu_isa_parse(&untouched, "avx3"), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "avx512"));
    assert_int_equal(untouched, CPU_SCALAR);
}

static void the_best_usable_one_is_picked(void **state)
{
    (void)state;
    cpu_isa isa;
    unsetenv("BERLU_ISA");
    assert_int_equal(cpu_isa_pick(&isa), BERLU_OK);
    assert_true(cpu_has(isa));
    assert_true(isa != CPU_SCALAR || (!cpu_has(CPU_AVX2) && !cpu_has(CPU_NEON)));
    assert_true(isa == CPU_AVX512 || !cpu_has(CPU_AVX512));
}

static void the_environment_chooses_a_usable_one(void **state)
{
    (void)state;
    for (int i = 0; i < CPU_ISA_COUNT; i++) {
        cpu_isa isa = CPU_BEST;
        setenv("BERLU_ISA", cpu_isa_name((cpu_isa)i), 1);
        berlu_status status = cpu_isa_pick(&isa);
        assert_int_equal(status, cpu_has((cpu_isa)i) ? BERLU_OK : BERLU_ERR_UNSUPPORTED);
        assert_int_equal(isa, cpu_has((cpu_isa)i) ? i : CPU_BEST);
    }
    unsetenv("BERLU_ISA");
}

/* The registers of two processors, cache by cache. */
static void caches_are_read_from_the_registers_of_x86(void **state)
{
    (void)state;
    cpu_caches zen3 = {0}, rapids = {0};
    assert_true(cpu_cache_add(&zen3, 0x00004121, 0x01c0003f, 0x3f));   /* 32 KiB of data */
    assert_true(cpu_cache_add(&zen3, 0x00004122, 0x01c0003f, 0x3f));   /* 32 KiB of code */
    assert_true(cpu_cache_add(&zen3, 0x00004143, 0x01c0003f, 0x3ff));  /* 512 KiB */
    assert_true(cpu_cache_add(&zen3, 0x0003c163, 0x03c0003f, 0x7fff)); /* 32 MiB for sixteen threads */
    assert_false(cpu_cache_add(&zen3, 0, 0, 0));
    assert_int_equal(zen3.l2, 512 << 10);
    assert_int_equal(zen3.l3, 32 << 20);
    assert_int_equal(zen3.l3_threads, 16);
    assert_true(cpu_cache_add(&rapids, 0x1c004143, 0x03c0003f, 0x7ff)); /* 2 MiB */
    assert_int_equal(rapids.l2, 2 << 20);
    assert_int_equal(rapids.l3, 0);
}

static void the_caches_of_this_machine_are_plausible(void **state)
{
    (void)state;
    cpu_caches c = cpu_caches_read();
    assert_true(c.l2 < (size_t)1 << 30 && c.l3 < (size_t)1 << 34);
    assert_true(c.l3 || !c.l3_threads);
}

static void an_unknown_name_in_the_environment_is_an_error(void **state)
{
    (void)state;
    cpu_isa isa = CPU_BEST;
    setenv("BERLU_ISA", "sse9", 1);
    assert_int_equal(cpu_isa_pick(&isa), BERLU_ERR_ARG);
    assert_non_null(strstr(berlu_last_error(), "BERLU_ISA"));
    setenv("BERLU_ISA", "", 1);
    assert_int_equal(cpu_isa_pick(&isa), BERLU_OK);
    unsetenv("BERLU_ISA");
}

static void scalar_is_always_there_and_the_model_has_a_name(void **state)
{
    (void)state;
    char name[64], tiny[4];
    assert_true(cpu_has(CPU_SCALAR));
    assert_false(cpu_has((cpu_isa)99));
    assert_true(strlen(cpu_model(name, sizeof name)) > 0);
    assert_true(strlen(cpu_model(tiny, sizeof tiny)) <= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_parse_back),
        cmocka_unit_test(the_best_usable_one_is_picked),
        cmocka_unit_test(the_environment_chooses_a_usable_one),
        cmocka_unit_test(caches_are_read_from_the_registers_of_x86),
        cmocka_unit_test(the_caches_of_this_machine_are_plausible),
        cmocka_unit_test(an_unknown_name_in_the_environment_is_an_error),
        cmocka_unit_test(scalar_is_always_there_and_the_model_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
