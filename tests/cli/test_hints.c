/* test_hints.c - wrong command lines and their error messages. SPDX-License-Identifier: MIT
 *
 * The lines were typed by people who used the program for the first time. Each must end with exit 2
 * (or 1 where only the attempt shows it), nothing on stdout, one line on stderr, and that line must
 * say what to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/command.h"
#include "support/folder.h"

typedef struct mistake {
    const char *words; /* separated by spaces; T: a training that would be right */
    const char *hint;  /* part of the line on stderr */
    int code;          /* 0 stands for 2 */
} mistake;

#define WITHOUT_ACT "train --model vit_micro --data synthetic --run z "
#define T           "train --model vit_micro --data synthetic --act berlu --run z "

static const mistake mistakes[] = {
    {"trian", "did you mean 'train'?", 0},
    {"-v", "--version or -V", 0},
    {"help trian", "did you mean 'train'?", 0},
    {"--json doctor", "options come after the command: berlu doctor ... --json", 0},
    {"train", "for example --model vit_micro", 0},
    {T "--model resnet50", "`berlu models` lists", 0},
    {T "--model vit_tiny_patch16_384", "`berlu models` lists", 0},
    {WITHOUT_ACT "--act berl", "did you mean 'berlu'?", 0},
    {WITHOUT_ACT "--act swish", "did you mean 'silu'?", 0},
    {WITHOUT_ACT "--act GELU", "did you mean 'gelu'?", 0},
    {WITHOUT_ACT "--act SiLU", "did you mean 'silu'?", 0},
    {WITHOUT_ACT "--act Berlu", "did you mean 'berlu'?", 0},
    {WITHOUT_ACT "--act hardswish", "did you mean 'hard_swish'?", 0},
    {WITHOUT_ACT "--act QuickGELU", "did you mean 'quick_gelu'?", 0},
    {WITHOUT_ACT "--act relu^2", "did you mean 'relu2'?", 0},
    {WITHOUT_ACT "--act lrelu", "did you mean 'leaky_relu'?", 0},
    {WITHOUT_ACT "--act LeakyReLU", "did you mean 'leaky_relu'?", 0},
    {WITHOUT_ACT "--act berlu:epsilon=0.1", "it has alpha, eps, degree", 0},
    {WITHOUT_ACT "--act berlu:eps=-1", "2^-60 to 2^60", 0},
    {T "--lr 0,001", "write 0.001", 0},
    {T "--batch-size 32", "did you mean --batch?", 0},
    {T "--batch_size 32", "did you mean --batch?", 0},
    {T "--learning-rate 1", "did you mean --lr?", 0},
    {T "--epoch 3", "did you mean --epochs?", 0},
    {T "--batch 1k", "write 1Ki (1024) or 1000", 0},
    {T "--batch 100000", "make it smaller", 0},
    {"train --model vit_micro --act berlu --run z --data cifar10", "`berlu data get cifar10`", 0},
    {"train --model vit_micro --act berlu --run z --data cifar10:", "`berlu data get cifar10`", 0},
    {"train --model vit_micro --act berlu --run z --data empty", "no images (.jpg .jpeg .png) in class folders", 0},
    {T "--patch 5", "not a multiple of --patch 5", 0},
    {T "--momentum 0.9", "has no effect because optimizer is adamw", 0},
    {T "--nesterov 1", "--nesterov is a flag: leave '1' out, or write --nesterov=1", 0},
    {T "--act-constraint gamma:0:1", "choose alpha, eps or beta", 0},
    {T "--act-constraint beta:0:1", "beta has no effect because berlu does not learn it", 0},
    {T "--act-constraint alpha:0:,eps:0.001:", "eps has no effect because berlu does not learn it", 0},
    {T "--config typo.yaml", "typo.yaml:2:9: epohcs: there is no such setting; did you mean epochs?", 0},
    {"train --model vit_micro --data synthetic --act berlu --run typo.yaml", "typo.yaml", 0},
    {"train --model vit_micro --data synthetic --act berlu --run typo.yaml --dry-run", "typo.yaml", 0},
    {"train --model vit_micro --data synthetic --act berlu --run typo.yaml/x --dry-run", "typo.yaml", 0},
    {"train --resume r", "write --run r --resume", 0},
    {"eval nosuchrun", "no such folder of a run", 0},
    {"eval runs", "holds 2 runs; name one of them, for example runs/a", 0},
    {"eval vit_micro", "is a model; give the folder of a run (or, to `berlu eval`, its --weights FILE", 0},
    {"eval typo.yaml", "is a file, not the folder of a run", 0},
    {"eval empty", "there is no run.json", 0},
    {"eval vit_micro --data synthetic --weights old.pth", "safetensors.torch.save_file(torch.load('old.pth'", 0},
    {"eval vit_micro --data synthetic --weights new.pth", "safetensors.torch.save_file(torch.load('new.pth'", 0},
    {"act eval gelu -x 1", "options begin with two dashes", 0},
    {"act plot gelu --svg nosuch/x.svg", "nosuch/x.svg", 1},
    {"eval norun --svg nosuch/x.svg", "there is no folder nosuch", 1}, /* before the work, which comes first here */
    {"eval norun --confusion runs", "is a folder", 1},
    {"data info synthetic --sheet nosuch/x.png", "there is no folder nosuch", 1},
    {"data info synthetic --cell 64", "--cell has no effect without --sheet", 0},
    {"bench act --n 4M", "write 4Mi (4194304) or 4000000", 0},
    {"bench act --n 16kb", "write 16Ki (16384) or 16000", 0},
    {"smooth --kinks 0,1 --slopes 0,1,0 --eps 0.6", "eps = 0.5 would fit", 0},
    {"smooth berlu", "it is leaky_relu smoothed", 0},
    {"smooth", "berlu smooth leaky_relu", 0},
    {"summary", "`berlu models` lists them", 0},
    /* commands under other names */
    {"plot gelu", "did you mean 'act plot'?", 0},
    {"activations", "did you mean 'act list'?", 0},
    {"version", "did you mean '--version'?", 0},
    {"smooth-check relu", "did you mean 'smooth check'?", 0},
    {"data download cifar10", "did you mean 'data get'?", 0},
    {"lipschitz gelu", "did you mean 'analyze lipschitz'?", 0},
    {"analyze lip gelu", "did you mean 'lipschitz'?", 0},
    {"evaluate r", "did you mean 'eval'?", 0},
    /* options under other names, and values */
    {"train --arch vit_micro", "did you mean --model?", 0},
    {T "--output runs/x", "did you mean --run?", 0},
    {T "--out runs/x", "did you mean --run?", 0},
    {T "--optim sgd", "did you mean --optimizer?", 0},
    {T "--amp", "did you mean --precision?", 0},
    {T "--continue", "did you mean --resume?", 0},
    {"smooth relu --epsilon 0.5", "did you mean --eps?", 0},
    {"act eval gelu --at 1", "did you mean --x?", 0},
    {"act plot gelu --out g.svg", "did you mean --svg?", 0},
    {"bench act --size 4Ki", "did you mean --n?", 0},
    {"data get cifar10 --file nosuch.tar.gz", "nosuch.tar.gz", 0},
    {"data get cifar10 --file new.pth", "new.pth", 0},
    {"data get cifar10 --file new.pth --url http://x/", "--url has no effect with --file", 0},
    {"data get cifar10 --dir data", "did you mean --out?", 0},
    {T "--device gpu", "did you mean 'cuda'?", 0},
    {"bench step --device gpu", "did you mean 'cuda'?", 0},
    {T "--device cuda:0", "did you mean 'cuda'?", 0},
    {T "--recipe Paper", "did you mean 'paper'?", 0},
    {T "--optimizer adam", "did you mean 'adamw'?", 0},
    {T "--schedule cosine", "did you mean 'cosine-step'?", 0},
    {"data get CIFAR10", "did you mean 'cifar10'?", 0},
    {"train --model vit_micro --act berlu --run z --data CIFAR10", "did you mean 'cifar10'?", 0},
    {"train --model vit_micro --act berlu --run z --data cifar-10", "did you mean 'cifar10'?", 0},
    {WITHOUT_ACT "--act leaky", "did you mean 'leaky_relu'?", 0},
    {WITHOUT_ACT "--act squared_relu", "did you mean 'relu2'?", 0},
    {WITHOUT_ACT "--act berlu(eps=0.1)", "parameters follow a colon, as in berlu:key=value", 0},
    {WITHOUT_ACT "--act berlu,eps=0.1", "parameters follow a colon, as in berlu:key=value", 0},
    /* half of what is needed, and the wrong kind of thing */
    {"train --resume", "--run DIR --resume", 0},
    {"train --run runs/a", "add --resume to continue it", 0},
    {T "--config runs/a", "give runs/a/run.json", 0},
    {"predict vit_micro x.png", "is a model; give the folder of a run", 0},
    {"export onnx vit_micro x.onnx", "is a model; give the folder of a run", 0},
    {"smooth gelu", "gelu is an activation, but not in the catalogue of what is smoothed: relu", 0},
    {"act plot gelu --svg gelu.png", "write gelu.svg", 0},
    {"act plot gelu --svg - --json", "standard output takes one thing", 0},
};

static void file_put(const char *path, const char *bytes, size_t count)
{
    assert_int_equal(file_write_atomic(path, bytes, count), BERLU_OK);
}

/* A folder with the files that the lines name; the tests run inside it. */
static int folder_enter(void **state)
{
    static char folder[FOLDER_PATH];
    (void)state;
    unsetenv("BERLU_DATA");
    if (chdir(folder_fresh(folder, "cli_hints")) != 0 || mkdir("empty", 0777) != 0 || mkdir("runs", 0777) != 0 ||
        mkdir("runs/a", 0777) != 0 || mkdir("runs/b", 0777) != 0)
        return -1;
    file_put("typo.yaml", "batch: 8\nepohcs: 3\n", 19);
    file_put("runs/a/run.json", "{}", 2);
    file_put("runs/b/run.json", "{}", 2);
    file_put("new.pth", "PK\3\4\0\0\0\0\0\0\0\0\0\0\0\0", 16);
    file_put("old.pth", "\x80\2\x8a\nl\xfc\x9c\x46\xf9\x20\x6a\xa8", 12);
    return 0;
}

static void answer(command_result *r, const char *line)
{
    char words[1024], *argv[64] = {"berlu"}, *rest = NULL;
    int count = 1;
    snprintf(words, sizeof words, "%s", line);
    for (char *word = strtok_r(words, " ", &rest); word && count < 63; word = strtok_r(NULL, " ", &rest))
        argv[count++] = word;
    command_run_with(r, argv, 0, NULL);
}

static void every_mistake_is_told_what_to_do(void **state)
{
    (void)state;
    int wrong = 0;
    for (size_t i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++) {
        const mistake *m = &mistakes[i];
        command_result r;
        answer(&r, m->words);
        const char *end = strchr(r.err, '\n');
        if (r.code != (m->code ? m->code : 2) || *r.out || !end || end[1] || !strstr(r.err, m->hint)) {
            print_error("berlu %s\nexit %d, wanted '%s', said: %s%s\n", m->words, r.code, m->hint, r.err, r.out);
            wrong++;
        }
        command_free(&r);
    }
    assert_int_equal(wrong, 0);
    assert_int_not_equal(access("z", F_OK), 0);
}

static void numbers_may_follow_an_option_one_by_one(void **state)
{
    (void)state;
    command_result listed, joined;
    answer(&listed, "smooth --slopes 0 1 0 --kinks -1 1 --eps 0.5 0.25");
    answer(&joined, "smooth --slopes 0,1,0 --kinks -1,1 --eps 0.5,0.25");
    assert_int_equal(joined.code, 0);
    assert_string_equal(listed.out, joined.out);
    command_free(&listed);
    command_free(&joined);
}

static void a_published_set_is_looked_for_where_the_variable_points(void **state)
{
    (void)state;
    command_result r;
    setenv("BERLU_DATA", "empty", 1);
    answer(&r, "data info cifar100");
    assert_int_equal(r.code, 2);
    assert_non_null(strstr(r.err, "not found in empty, the folder of BERLU_DATA; get it with `berlu data get cifar100 "
                                  "--out empty`"));
    command_free(&r);
    unsetenv("BERLU_DATA");
}

/* The plot alone goes to standard output, so that it can be piped; tables go to standard error. */
static void a_dash_sends_the_plot_to_standard_output(void **state)
{
    (void)state;
    static const char *const lines[] = {"act plot gelu --svg -", "smooth relu --eps 0.5 --svg -",
                                        "analyze linearity gelu --svg -"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        command_result r;
        answer(&r, lines[i]);
        assert_int_equal(r.code, 0);
        assert_int_equal(strncmp(r.out, "<svg", 4), 0);
        assert_string_equal(r.out + strlen(r.out) - 7, "</svg>\n");
        assert_null(strstr(r.err, "<svg"));
        assert_int_not_equal(access("-", F_OK), 0);
        command_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dash_sends_the_plot_to_standard_output),
        cmocka_unit_test(every_mistake_is_told_what_to_do),
        cmocka_unit_test(numbers_may_follow_an_option_one_by_one),
        cmocka_unit_test(a_published_set_is_looked_for_where_the_variable_points),
    };
    return cmocka_run_group_tests(tests, folder_enter, NULL);
}
