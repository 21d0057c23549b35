/* test_get.c - archives that are not to be trusted, and downloads from a server on this machine.
 * SPDX-License-Identifier: MIT */
#include <archive.h>
#include <archive_entry.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/archive.h"
#include "data/get.h"
#include "data/sha256.h"
#include "support.h"

/* ---- archives -------------------------------------------------------------------------------- */

typedef struct member {
    const char *name;
    unsigned type; /* AE_IFREG ... */
    const char *content, *link;
} member;

static void tar_make(const char *path, const member *members, size_t count)
{
    struct archive *a = archive_write_new();
    archive_write_add_filter_gzip(a);
    archive_write_set_format_pax_restricted(a);
    assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
    for (size_t i = 0; i < count; i++) {
        struct archive_entry *e = archive_entry_new();
        size_t size = members[i].content ? strlen(members[i].content) : 0;
        archive_entry_set_pathname(e, members[i].name);
        archive_entry_set_filetype(e, members[i].type);
        archive_entry_set_perm(e, 0644);
        archive_entry_set_size(e, (la_int64_t)size);
        if (members[i].link && members[i].type == AE_IFLNK)
            archive_entry_set_symlink(e, members[i].link);
        else if (members[i].link)
            archive_entry_set_hardlink(e, members[i].link);
        assert_true(archive_write_header(a, e) >= ARCHIVE_WARN);
        if (size)
            archive_write_data(a, members[i].content, size);
        archive_entry_free(e);
    }
    archive_write_close(a);
    archive_write_free(a);
}

static int entries_in(const char *folder)
{
    DIR *d = opendir(folder);
    int count = -2; /* . and .. */
    while (d && readdir(d))
        count++;
    if (d)
        closedir(d);
    return count;
}

static void an_archive_unpacks_into_its_folder(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], tar[FOLDER_PATH], target[FOLDER_PATH], path[FOLDER_PATH], *bytes;
    size_t size;
    static const member good[] = {{"./", AE_IFDIR, NULL, NULL},
                                  {"./set/", AE_IFDIR, NULL, NULL},
                                  {"./set/a.txt", AE_IFREG, "hello", NULL},
                                  {"./set/deep/b.txt", AE_IFREG, "there", NULL}};
    folder_fresh(folder, "unpack");
    tar_make(folder_path(tar, folder, "good.tar.gz"), good, COUNT(good));
    folder_path(target, folder, "set");
    assert_ok(tarball_unpack(tar, "set", target, (tarball_limits){100, 10}));
    assert_ok(file_read_all(&bytes, &size, folder_path(path, folder, "set/deep/b.txt"), 100));
    assert_string_equal(bytes, "there");
    free(bytes);
    assert_refused(tarball_unpack(tar, "set", target, (tarball_limits){100, 10}), BERLU_ERR_ARG, "already there");
    assert_int_equal(entries_in(folder), 2); /* the archive and the set: nothing temporary is left */
}

static void archives_that_lead_astray_are_refused_and_leave_nothing(void **state)
{
    (void)state;
    static const struct {
        member m;
        const char *word;
    } bad[] = {
        {{"set/../../escape", AE_IFREG, "x", NULL}, "leads out"},
        {{"../set/x", AE_IFREG, "x", NULL}, "leads out"},
        {{"set/x/..", AE_IFREG, "x", NULL}, "leads out"},
        {{"/set/x", AE_IFREG, "x", NULL}, "absolute"},
        {{"set/link", AE_IFLNK, NULL, "/etc/passwd"}, "link"},
        {{"set/hard", AE_IFREG, NULL, "set/a.txt"}, "link"},
        {{"set/pipe", AE_IFIFO, NULL, NULL}, "device"},
        {{"elsewhere/x", AE_IFREG, "x", NULL}, "outside"},
        {{"settled/x", AE_IFREG, "x", NULL}, "outside"},
        {{"set/large", AE_IFREG, "0123456789012345678901234567890123456789", NULL}, "more than was expected"},
    };
    char folder[FOLDER_PATH], tar[FOLDER_PATH], target[FOLDER_PATH];
    for (size_t i = 0; i < COUNT(bad); i++) {
        const member both[] = {{"set/a.txt", AE_IFREG, "hello", NULL}, bad[i].m};
        folder_fresh(folder, "unpack_bad");
        tar_make(folder_path(tar, folder, "bad.tar.gz"), both, 2);
        assert_refused(tarball_unpack(tar, "set", folder_path(target, folder, "set"), (tarball_limits){30, 10}),
                       BERLU_ERR_INPUT, bad[i].word);
        assert_int_equal(entries_in(folder), 1);
    }
    const member many[] = {
        {"set/a", AE_IFREG, "1", NULL}, {"set/b", AE_IFREG, "2", NULL}, {"set/c", AE_IFREG, "3", NULL}};
    tar_make(tar, many, 3);
    assert_refused(tarball_unpack(tar, "set", target, (tarball_limits){30, 2}), BERLU_ERR_INPUT, "more files");
}

static void a_cut_or_foreign_archive_is_named(void **state)
{
    (void)state;
    char folder[FOLDER_PATH], tar[FOLDER_PATH], target[FOLDER_PATH], *bytes, noise[4000];
    size_t size;
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (char)('a' + i * i % 23);
    noise[sizeof noise - 1] = '\0';
    const member good[] = {{"set/a.txt", AE_IFREG, noise, NULL}};
    folder_fresh(folder, "unpack_cut");
    folder_path(target, folder, "set");
    tar_make(folder_path(tar, folder, "x.tar.gz"), good, 1);
    assert_ok(file_read_all(&bytes, &size, tar, 1 << 20));
    assert_ok(file_write_atomic(tar, bytes, size / 2));
    free(bytes);
    assert_refused(tarball_unpack(tar, "set", target, (tarball_limits){1 << 20, 10}), BERLU_ERR_INPUT, "x.tar.gz");
    assert_ok(file_write_atomic(tar, "this is no archive", 18));
    assert_refused(tarball_unpack(tar, "set", target, (tarball_limits){1 << 20, 10}), BERLU_ERR_INPUT, "x.tar.gz");
    assert_int_equal(entries_in(folder), 1);
}

/* ---- downloads ------------------------------------------------------------------------------- */

typedef struct server {
    pid_t pid;
    int hold; /* closing it ends the server */
    int port;
    char folder[FOLDER_PATH];
} server;

static int server_start(void **state)
{
    server *s = calloc(1, sizeof *s);
    int to[2], from[2];
    char script[FOLDER_PATH], port[16] = "";
    const char *root = getenv("BERLU_SOURCE_DIR");
    folder_path(script, root ? root : ".", "tests/data/http_server.py");
    folder_fresh(s->folder, "served");
    if (pipe(to) != 0 || pipe(from) != 0)
        return -1;
    s->pid = fork();
    if (s->pid == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        close(to[1]);
        close(from[0]);
        execlp("python3", "python3", script, s->folder, (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    s->hold = to[1];
    ssize_t got = read(from[0], port, sizeof port - 1);
    close(from[0]);
    s->port = got > 0 ? atoi(port) : 0;
    *state = s;
    return s->port > 0 ? 0 : -1;
}

static int server_stop(void **state)
{
    server *s = *state;
    close(s->hold);
    waitpid(s->pid, NULL, 0);
    free(s);
    return 0;
}

static const char *hash_of(const char *path, char hex[SHA256_TEXT])
{
    assert_ok(sha256_file(hex, path));
    return hex;
}

/* A file of a megabyte on the server. */
static const char *served_file(const server *s, char path[FOLDER_PATH])
{
    enum { SIZE = 1 << 20 };
    char *bytes = malloc(SIZE);
    for (int i = 0; i < SIZE; i++)
        bytes[i] = (char)((unsigned)i * 2654435761u >> 21);
    assert_ok(file_write_atomic(folder_path(path, s->folder, "thing.bin"), bytes, SIZE));
    free(bytes);
    return path;
}

static berlu_status fetch(const server *s, const char *kind, const char *to, const char *hash, uint64_t bytes,
                          int tries)
{
    char url[256];
    snprintf(url, sizeof url, "http://127.0.0.1:%d/%s/thing.bin", s->port, kind);
    return download_file(&(download){.url = url, .path = to, .sha256 = hash, .bytes = bytes, .tries = tries});
}

static void assert_same_file(const char *a, const char *b)
{
    char first[SHA256_TEXT], second[SHA256_TEXT];
    assert_string_equal(hash_of(a, first), hash_of(b, second));
}

static void a_file_arrives_whole_also_through_a_redirection(void **state)
{
    const server *s = *state;
    char folder[FOLDER_PATH], from[FOLDER_PATH], to[FOLDER_PATH], hex[SHA256_TEXT];
    folder_fresh(folder, "download");
    hash_of(served_file(s, from), hex);
    folder_path(to, folder, "thing.bin");
    assert_ok(fetch(s, "file", to, hex, 1 << 20, 1));
    assert_same_file(from, to);
    assert_int_equal(entries_in(folder), 1);
    remove(to);
    assert_ok(fetch(s, "redirect", to, hex, 1 << 20, 1));
    assert_same_file(from, to);
}

static void a_cut_download_goes_on_where_it_stopped(void **state)
{
    const server *s = *state;
    char folder[FOLDER_PATH], from[FOLDER_PATH], to[FOLDER_PATH], part[FOLDER_PATH], hex[SHA256_TEXT];
    unsigned char *bytes = NULL;
    size_t size = 0;
    folder_fresh(folder, "download_cut");
    hash_of(served_file(s, from), hex);
    folder_path(to, folder, "thing.bin");
    assert_refused(fetch(s, "cut", to, hex, 1 << 20, 1), BERLU_ERR_IO, "goes on from there");
    assert_ok(file_in_all(&bytes, &size, folder_path(part, folder, "thing.bin.part")));
    assert_int_equal(size, 1 << 19); /* half of it came, and is kept */
    free(bytes);
    assert_int_equal(file_exists(to), 0);
    assert_ok(fetch(s, "cut", to, hex, 1 << 20, 1)); /* the server sends the rest only when asked for a range */
    assert_same_file(from, to);
    remove(to);
    assert_ok(fetch(s, "cut", to, hex, 1 << 20, 2)); /* and by itself, when it may try again */
    assert_same_file(from, to);
}

static void a_server_without_ranges_is_asked_for_the_whole_again(void **state)
{
    const server *s = *state;
    char folder[FOLDER_PATH], from[FOLDER_PATH], to[FOLDER_PATH], part[FOLDER_PATH], hex[SHA256_TEXT];
    folder_fresh(folder, "download_whole");
    hash_of(served_file(s, from), hex);
    folder_path(to, folder, "thing.bin");
    assert_ok(file_write_atomic(folder_path(part, folder, "thing.bin.part"), "wrong beginning", 15));
    assert_ok(fetch(s, "whole", to, hex, 1 << 20, 2));
    assert_same_file(from, to);
}

static void wrong_hash_and_wrong_length_are_refused_and_removed(void **state)
{
    const server *s = *state;
    char folder[FOLDER_PATH], from[FOLDER_PATH], to[FOLDER_PATH], hex[SHA256_TEXT];
    folder_fresh(folder, "download_wrong");
    hash_of(served_file(s, from), hex);
    folder_path(to, folder, "thing.bin");
    static const char other[] = "0000000000000000000000000000000000000000000000000000000000000000";
    assert_refused(fetch(s, "file", to, other, 1 << 20, 1), BERLU_ERR_INPUT, hex);
    assert_int_equal(entries_in(folder), 0);
    assert_refused(fetch(s, "file", to, hex, (1 << 20) - 1, 1), BERLU_ERR_INPUT, "longer than");
    assert_int_equal(entries_in(folder), 0);
    assert_refused(fetch(s, "file", to, hex, (1 << 20) + 1, 1), BERLU_ERR_INPUT, "were expected");
    assert_int_equal(entries_in(folder), 0);
}

static void missing_files_circles_and_silent_ports_are_errors_that_name_the_address(void **state)
{
    const server *s = *state;
    char folder[FOLDER_PATH], to[FOLDER_PATH], url[128];
    folder_fresh(folder, "download_missing");
    folder_path(to, folder, "thing.bin");
    assert_refused(fetch(s, "nothing", to, NULL, 0, 1), BERLU_ERR_IO, "404");
    assert_refused(fetch(s, "nothing", to, NULL, 0, 1), BERLU_ERR_IO, "/nothing/thing.bin");
    snprintf(url, sizeof url, "http://127.0.0.1:%d/circle", s->port);
    assert_refused(download_file(&(download){.url = url, .path = to, .tries = 1}), BERLU_ERR_IO, "/circle");
    assert_refused(download_file(&(download){.url = "http://127.0.0.1:1/x", .path = to, .tries = 1}), BERLU_ERR_IO,
                   "127.0.0.1:1");
    assert_refused(download_file(&(download){.url = "file:///etc/passwd", .path = to, .tries = 1}), BERLU_ERR_IO,
                   "file:///etc/passwd");
    assert_int_equal(entries_in(folder), 0); /* no empty part either */
}

static void a_file_of_unknown_length_is_cut_off_at_its_bound(void **state)
{
    const server *s = *state;
    char folder[FOLDER_PATH], from[FOLDER_PATH], to[FOLDER_PATH], url[256];
    folder_fresh(folder, "download_most");
    served_file(s, from);
    folder_path(to, folder, "thing.bin");
    snprintf(url, sizeof url, "http://127.0.0.1:%d/file/thing.bin", s->port);
    assert_refused(download_file(&(download){.url = url, .path = to, .most = 10, .tries = 1}), BERLU_ERR_INPUT,
                   "longer than the allowed 10 bytes");
    assert_int_equal(entries_in(folder), 0); /* neither the file nor a part of it */
}

static void stopping_keeps_the_part(void **state)
{
    const server *s = *state;
    char folder[FOLDER_PATH], from[FOLDER_PATH], to[FOLDER_PATH], url[256];
    static const atomic_int stop = 1;
    folder_fresh(folder, "download_stop");
    served_file(s, from);
    folder_path(to, folder, "thing.bin");
    snprintf(url, sizeof url, "http://127.0.0.1:%d/file/thing.bin", s->port);
    assert_refused(download_file(&(download){.url = url, .path = to, .stop = &stop}), BERLU_ERR_STOPPED, "stopped");
    assert_int_equal(entries_in(folder), 0); /* nothing had come, nothing is kept */
    char part[FOLDER_PATH];
    assert_ok(file_write_atomic(folder_path(part, folder, "thing.bin.part"), "begun", 5));
    assert_refused(download_file(&(download){.url = url, .path = to, .stop = &stop}), BERLU_ERR_STOPPED, "stopped");
    assert_int_equal(file_exists(part), 1);
}

static void a_second_download_leaves_the_part_to_the_first(void **state)
{
    const server *s = *state;
    char folder[FOLDER_PATH], from[FOLDER_PATH], to[FOLDER_PATH], part[FOLDER_PATH], url[256];
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    folder_fresh(folder, "download_busy");
    served_file(s, from);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/file/thing.bin", s->port);
    const download d = {.url = url, .path = folder_path(to, folder, "thing.bin")};
    int fd = open(folder_path(part, folder, "thing.bin.part"), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &all), 0);
    assert_refused(download_file(&d), BERLU_ERR_BUSY, "another process is downloading it");
    assert_int_equal(file_exists(part), 1);
    close(fd);
    assert_ok(download_file(&d));
    assert_same_file(from, to);
}

/* An archive of two files for the layout, served by the test's server; hash and length go into the
 * layout. */
static void archive_serve(const server *s, cifar_layout *l, char hex[SHA256_TEXT], int damaged)
{
    char path[FOLDER_PATH];
    text train = {0}, test = {0};
    tiny_records(&train, l, 100, 0);
    tiny_records(&test, l, 100, 100);
    if (damaged)
        test.data[1] = 99; /* a class whose coarse label is another one */
    folder_path(path, s->folder, l->archive);
    struct archive *a = archive_write_new();
    archive_write_add_filter_gzip(a);
    archive_write_set_format_ustar(a);
    assert_int_equal(archive_write_open_filename(a, path), ARCHIVE_OK);
    for (int i = 0; i < 2; i++) {
        struct archive_entry *e = archive_entry_new();
        const text *t = i ? &test : &train;
        archive_entry_set_pathname(e, i ? "cifar-100-binary/test.bin" : "cifar-100-binary/train.bin");
        archive_entry_set_filetype(e, AE_IFREG);
        archive_entry_set_perm(e, 0644);
        archive_entry_set_size(e, (la_int64_t)t->length);
        archive_write_header(a, e);
        archive_write_data(a, t->data, t->length);
        archive_entry_free(e);
    }
    archive_write_close(a);
    archive_write_free(a);
    text_free(&train);
    text_free(&test);
    l->sha256 = hash_of(path, hex);
    unsigned char *bytes = NULL;
    size_t size = 0;
    assert_ok(file_in_all(&bytes, &size, path));
    l->archive_bytes = size;
    free(bytes);
}

/* The whole of `berlu data get` on a set of a few records. */
static void a_set_is_fetched_checked_unpacked_and_verified(void **state)
{
    const server *s = *state;
    char folder[FOLDER_PATH], made[FOLDER_PATH], hex[SHA256_TEXT], url[256];
    cifar_layout l = tiny_layout(&cifar100_layout, 100);
    archive_serve(s, &l, hex, 0);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/cut/%s", s->port, l.archive);
    folder_fresh(folder, "get");
    download from = {.url = url, .sha256 = "c4a38c50"};
    assert_refused(data_get(&l, folder, &from, 0), BERLU_ERR_ARG, "64 hexadecimal digits");
    from.sha256 = NULL;
    assert_ok(data_get(&l, folder, &from, 0));
    assert_int_equal(file_exists(folder_path(made, folder, "cifar-100-binary/train.bin")), 1);
    assert_int_equal(entries_in(folder), 1); /* the archive is gone */
    from.url = "http://127.0.0.1:1/nobody-listens";
    assert_ok(data_get(&l, folder, &from, 0)); /* it is there already */
    assert_ok(file_write_atomic(made, "damaged", 7));
    assert_refused(data_get(&l, folder, &from, 0), BERLU_ERR_INPUT, "train.bin");
    assert_int_equal(file_exists(made), 1); /* never removed by us */
}

static void an_archive_at_hand_needs_no_network_and_stays(void **state)
{
    const server *s = *state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], out[FOLDER_PATH], hex[SHA256_TEXT];
    cifar_layout l = tiny_layout(&cifar100_layout, 100);
    archive_serve(s, &l, hex, 0);
    folder_path(path, s->folder, l.archive);
    folder_path(out, folder_fresh(folder, "get_file"), "sets");
    download from = {.url = "http://127.0.0.1:1/nobody-listens", .file = path};
    l.sha256 = cifar100_layout.sha256;
    assert_refused(data_get(&l, out, &from, 0), BERLU_ERR_INPUT, "not the published archive");
    assert_false(folder_exists(out)); /* nothing was written */
    from.sha256 = hex;
    assert_ok(data_get(&l, out, &from, 0));
    assert_int_equal(entries_in(out), 1);
    assert_true(folder_exists(folder_path(folder, out, "cifar-100-binary")));
    assert_true(file_exists(path));
}

/* What an archive at hand may be instead is named, and nothing is written. */
static void what_is_not_the_archive_is_named(void **state)
{
    const server *s = *state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], cut[FOLDER_PATH], out[FOLDER_PATH], hex[SHA256_TEXT];
    unsigned char *bytes = NULL;
    size_t size = 0;
    cifar_layout l = tiny_layout(&cifar100_layout, 100);
    archive_serve(s, &l, hex, 0);
    folder_path(out, folder_fresh(folder, "get_other"), "sets");
    assert_ok(file_in_all(&bytes, &size, folder_path(path, s->folder, l.archive)));
    assert_ok(file_write_atomic(folder_path(cut, folder, l.archive), bytes, size / 2));
    assert_refused(data_get(&l, out, &(download){.file = cut}, 0), BERLU_ERR_INPUT, "cut short");
    assert_refused(data_get(&l, out, &(download){.file = cut, .sha256 = hex}, 0), BERLU_ERR_INPUT, hex);
    assert_refused(data_get(&l, out, &(download){.file = folder}, 0), BERLU_ERR_INPUT, "is a folder");
    assert_refused(data_get(&l, out, &(download){.file = folder_path(cut, folder, "none.tar.gz")}, 0), BERLU_ERR_INPUT,
                   "none.tar.gz: cannot be read");
    assert_ok(file_write_atomic(folder_path(cut, folder, "cifar-100-python.tar.gz"), bytes, size / 2));
    assert_refused(data_get(&l, out, &(download){.file = cut}, 0), BERLU_ERR_INPUT, "Python version");
    assert_ok(file_write_atomic(folder_path(cut, folder, "empty"), "", 0));
    assert_refused(data_get(&l, out, &(download){.file = cut}, 0), BERLU_ERR_INPUT, "has 0 bytes");
    assert_false(folder_exists(out));
    free(bytes);
}

/* The hash is right (somebody gave it), the labels are not: the set does not get its name. */
static void a_set_with_the_right_hash_and_wrong_content_is_set_aside(void **state)
{
    const server *s = *state;
    char folder[FOLDER_PATH], path[FOLDER_PATH], hex[SHA256_TEXT], url[256];
    cifar_layout l = tiny_layout(&cifar100_layout, 100);
    archive_serve(s, &l, hex, 1);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/file/%s", s->port, l.archive);
    folder_fresh(folder, "get_aside");
    for (int twice = 0; twice < 2; twice++) {
        assert_refused(data_get(&l, folder, &(download){.url = url, .tries = 1}, 0), BERLU_ERR_INPUT, "coarse label");
        assert_non_null(strstr(berlu_last_error(), "cifar-100-binary.damaged)"));
        assert_false(folder_exists(folder_path(path, folder, "cifar-100-binary")));
        assert_true(folder_exists(folder_path(path, folder, "cifar-100-binary.damaged")));
        assert_int_equal(entries_in(folder), 2); /* that, and the archive */
    }
    archive_serve(s, &l, hex, 0); /* a right one replaces the archive, and the set appears */
    assert_ok(data_get(&l, folder, &(download){.url = url, .tries = 1}, 0));
    assert_true(folder_exists(folder_path(path, folder, "cifar-100-binary")));
}

int main(void)
{
    const struct CMUnitTest archives[] = {
        cmocka_unit_test(an_archive_unpacks_into_its_folder),
        cmocka_unit_test(archives_that_lead_astray_are_refused_and_leave_nothing),
        cmocka_unit_test(a_cut_or_foreign_archive_is_named),
    };
    const struct CMUnitTest downloads[] = {
        cmocka_unit_test(a_file_arrives_whole_also_through_a_redirection),
        cmocka_unit_test(a_cut_download_goes_on_where_it_stopped),
        cmocka_unit_test(a_server_without_ranges_is_asked_for_the_whole_again),
        cmocka_unit_test(wrong_hash_and_wrong_length_are_refused_and_removed),
        cmocka_unit_test(missing_files_circles_and_silent_ports_are_errors_that_name_the_address),
        cmocka_unit_test(a_file_of_unknown_length_is_cut_off_at_its_bound),
        cmocka_unit_test(stopping_keeps_the_part),
        cmocka_unit_test(a_second_download_leaves_the_part_to_the_first),
        cmocka_unit_test(a_set_is_fetched_checked_unpacked_and_verified),
        cmocka_unit_test(an_archive_at_hand_needs_no_network_and_stays),
        cmocka_unit_test(what_is_not_the_archive_is_named),
        cmocka_unit_test(a_set_with_the_right_hash_and_wrong_content_is_set_aside),
    };
    int failed = cmocka_run_group_tests_name("archives", archives, NULL, NULL);
    download nowhere = {.url = "http://127.0.0.1:1/", .path = "/nonexistent/x"};
    if (download_file(&nowhere) == BERLU_ERR_UNSUPPORTED)
        return failed; /* a build without libcurl */
    return failed + cmocka_run_group_tests_name("downloads", downloads, server_start, server_stop);
}
