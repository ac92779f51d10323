/* Hostile and broken YAML: refused with a line, quickly, within bounded memory. */
#include "support.h"

#include "config/schema/yaml.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct yaml_case {
    const char *name;
    const char *text;
    int rc;
    const char *message; /* whole */
};

static const struct yaml_case cases[] = {
    {"tab as indentation", "- name: a\n\tfamily: b\n", -EINVAL,
     "f.yaml:2: YAML: a tab: indent with spaces (found a tab character that violates indentation)"},
    {"tab behind wide characters", "# \xc3\xa4\xc3\xa4\n- a: \xc3\xa4\n\tb: c\n", -EINVAL,
     "f.yaml:3: YAML: a tab: indent with spaces (found a tab character that violates indentation)"},
    {"open quote", "a: \"b\nc: d\n", -EINVAL,
     "f.yaml:3: YAML: found unexpected end of stream (while scanning a quoted scalar from line 1)"},
    {"open bracket", "a: [b, c\nd: e\n", -EINVAL,
     "f.yaml:2: YAML: did not find expected ',' or ']' (while parsing a flow sequence from line "
     "1)"},
    {"colon in plain text", "fix: do this: that\n", -EINVAL,
     "f.yaml:1: YAML: mapping values are not allowed in this context"},
    {"bad indentation", "a: b\n  c: d\n", -EINVAL,
     "f.yaml:2: YAML: mapping values are not allowed in this context"},
    {"text behind a list", "- a\nb\n", -EINVAL,
     "f.yaml:3: YAML: could not find expected ':' (while scanning a simple key from line 2)"},
    {"alias", "a: &x b\nc: *x\n", -EINVAL,
     "f.yaml:1: YAML: anchors and aliases (& and *) are not allowed"},
    {"anchor on a list", "a:\n  &x [b]\n", -EINVAL,
     "f.yaml:2: YAML: anchors and aliases (& and *) are not allowed"},
    {"unknown alias", "a: b\nc: *nowhere\n", -EINVAL,
     "f.yaml:2: YAML: anchors and aliases (& and *) are not allowed"},
    {"tag", "a: !!binary aGVsbG8=\n", -EINVAL, "f.yaml:1: YAML: tags (!) are not allowed"},
    {"tag on a mapping", "a: !thing {b: c}\n", -EINVAL, "f.yaml:1: YAML: tags (!) are not allowed"},
    {"two documents", "---\na: b\n---\nc: d\n", -EINVAL,
     "f.yaml:3: YAML: more than one document (---) in the file"},
    {"list as key", "? [a, b]\n: c\n", -EINVAL, "f.yaml:1: YAML: a list or mapping as a key"},
    {"mapping as key", "{{a: b}: c}\n", -EINVAL, "f.yaml:1: YAML: a list or mapping as a key"},
    {"not UTF-8", "a: b\nc: \xff\xfe\n", -EINVAL, "f.yaml:2: YAML: invalid leading UTF-8 octet"},
    {"half a character", "a: \xc3", -EINVAL, "f.yaml:1: YAML: incomplete UTF-8 octet sequence"},
    {"control character", "a: b\nc: d\ne: \x01\n", -EINVAL,
     "f.yaml:3: YAML: control characters are not allowed"},
    {"UTF-16", "\xff\xfe-\0 \0a\0", -EINVAL, "f.yaml:1: YAML: invalid leading UTF-8 octet"},
    {"17 levels", "[[[[[[[[[[[[[[[[[a]]]]]]]]]]]]]]]]]\n", -EFBIG,
     "f.yaml:1: YAML: nested too deeply"},
    {"unknown directive", "%FOO bar\n---\na: b\n", -EINVAL,
     "f.yaml:1: YAML: found unknown directive name (while scanning a directive from line 1)"},
    {"tab behind a dash", "a:\n- \t b\n", -EINVAL,
     "f.yaml:2: YAML: a tab: indent with spaces (found character that cannot start any token)"},
    {"future version", "%YAML 3.0\n---\na: b\n", -EINVAL,
     "f.yaml:1: YAML: found incompatible YAML document"},
};

Test(yaml, refused)
{
    for (size_t i = 0; i < SHK_COUNT(cases); i++) {
        const struct yaml_case *c = &cases[i];
        struct shk_arena arena = {0};
        struct shk_error err = {""};
        const struct shk_yaml_node *root = NULL;
        int rc = shk_yaml_parse(&arena, "f.yaml", c->text, strlen(c->text), &root, &err);
        cr_expect_eq(rc, c->rc, "%s: status %d", c->name, rc);
        cr_expect_null(root, "%s", c->name);
        cr_expect_str_eq(err.text, c->message, "%s:\n  got  %s\n  want %s", c->name, err.text,
                         c->message);
        shk_arena_free(&arena);
    }
}

Test(yaml, empty)
{
    static const char *const texts[] = {
        "",        "\n\n", "# only comments\n", "---\n",
        "--- ~\n", "null", "\xef\xbb\xbf",      "\xef\xbb\xbf# comment\n"};
    for (size_t i = 0; i < SHK_COUNT(texts); i++) {
        struct shk_arena arena = {0};
        struct shk_error err = {""};
        const struct shk_yaml_node *root = (const struct shk_yaml_node *)1;
        cr_expect_eq(shk_yaml_parse(&arena, "f", texts[i], strlen(texts[i]), &root, &err), 0,
                     "%zu: %s", i, err.text);
        cr_expect_null(root, "%zu", i);
        shk_arena_free(&arena);
    }
    struct shk_arena arena = {0};
    const struct shk_yaml_node *root;
    cr_expect_eq(shk_yaml_parse(&arena, "f", NULL, 0, &root, NULL), 0);
    cr_expect_null(root);
    shk_arena_free(&arena);
}

Test(yaml, tree)
{
    static const char text[] =
        "\xef\xbb\xbf# comment\na: b\nlist:\n  - \"x\"\n  - {k: v}\n'q': |\n  two\n  lines\n";
    struct shk_arena arena = {0};
    const struct shk_yaml_node *root = NULL;
    cr_assert_eq(shk_yaml_parse(&arena, "f", text, sizeof text - 1, &root, NULL), 0);
    cr_assert_eq(root->kind, SHK_YAML_MAPPING);
    const struct shk_yaml_node *a = shk_yaml_get(root, "a"), *list = shk_yaml_get(root, "list");
    cr_expect_str_eq(a->text, "b");
    cr_expect(a->plain);
    cr_expect_eq(a->line, 2);
    cr_expect_eq(list->kind, SHK_YAML_LIST);
    cr_expect_eq(list->line, 4);
    cr_expect_not(list->first->plain);
    cr_expect_str_eq(shk_yaml_get(list->first->next, "k")->text, "v");
    cr_expect_eq(list->first->next->line, 5);
    cr_expect_null(list->first->next->next);
    cr_expect_str_eq(shk_yaml_get(root, "q")->text, "two\nlines\n");
    cr_expect_null(shk_yaml_get(root, "none"));
    cr_expect_null(shk_yaml_get(list, "a"));
    shk_arena_free(&arena);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Parses `count` times `piece` behind `head` and expects that status within 10 s of CPU (with
 * sanitizers; it takes well under a second). */
static void expect_bounded(const char *head, const char *piece, size_t count, int rc,
                           const char *message)
{
    struct shk_strbuf text = SHK_STRBUF_INIT;
    struct shk_error err = {""};
    struct shk_arena arena = {0};
    const struct shk_yaml_node *root = NULL;
    shk_strbuf_puts(&text, head);
    for (size_t i = 0; i < count; i++)
        shk_strbuf_puts(&text, piece);
    cr_assert_not(text.failed);
    double start = seconds();
    cr_expect_eq(shk_yaml_parse(&arena, "f.yaml", text.data, text.len, &root, &err), rc, "%s",
                 err.text);
    cr_expect_lt(seconds() - start, 10);
    cr_expect_str_eq(err.text, message, "got %s", err.text);
    shk_arena_free(&arena);
    shk_strbuf_free(&text);
}

Test(yaml, alias_bomb)
{
    expect_bounded("a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n",
                   "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n", 1000, -EINVAL,
                   "f.yaml:1: YAML: anchors and aliases (& and *) are not allowed");
}

Test(yaml, deep_nesting)
{
    expect_bounded("", "[", 1000000, -EFBIG, "f.yaml:1: YAML: nested too deeply");
    expect_bounded("", "{a: ", 1000000, -EFBIG, "f.yaml:1: YAML: nested too deeply");
    expect_bounded("", "- ", 1000000, -EFBIG, "f.yaml:1: YAML: nested too deeply");
    expect_bounded("", "? ", 1000000, -EINVAL, "f.yaml:1: YAML: a list or mapping as a key");
}

Test(yaml, many_nodes)
{
    expect_bounded("", "- a\n", 1000000, -EFBIG,
                   "f.yaml:200000: YAML: too many values in one file");
    expect_bounded("[", "a,", 1000000, -EFBIG, "f.yaml:1: YAML: too many values in one file");
}

Test(yaml, ten_megabytes)
{
    expect_bounded("", "# 0123456789012345678901234567890123456789\n", 250000, -EFBIG,
                   "f.yaml: larger than 4 MiB");
}

Test(yaml, long_pieces_are_linear)
{
    expect_bounded("a: ", "x", 4000000, 0, "");
    expect_bounded("a: \"x", "\\x41", 1000000, -EINVAL,
                   "f.yaml:1: YAML: found unexpected end of stream (while scanning a quoted scalar "
                   "from line 1)");
    expect_bounded("#", "#", 4000000, 0, "");
    expect_bounded("", "\n", 4000000, 0, "");
    expect_bounded("a", " ", 4000000, 0, "");
}

/* No byte string may crash the loader: pseudo-random bytes, and a good file with bytes changed. */
Test(yaml, random_bytes)
{
    static const char good[] = SETTING_ROW("NCCL_X") "  default: \"a\"\n" SETTING_ROW("NCCL_Y");
    unsigned seed = 12345;
    for (unsigned round = 0; round < 20000; round++) {
        char buf[sizeof good - 1];
        size_t len = sizeof buf;
        memcpy(buf, good, len);
        if (round % 4 == 0)
            for (size_t i = 0; i < len; i++)
                buf[i] = (char)rand_r(&seed);
        else
            for (unsigned i = 0; i < round % 4; i++)
                buf[(size_t)rand_r(&seed) % len] = (char)rand_r(&seed);
        struct shk_error err = {""};
        struct shk_config *config = NULL;
        int rc = load_alone(SHK_SECTION_SETTINGS, "f.yaml", buf, len - round % 7, &config, &err);
        cr_expect((rc == 0) == (err.text[0] == '\0'), "round %u: %d %s", round, rc, err.text);
        cr_expect(rc == 0 || strncmp(err.text, "f.yaml:", 7) == 0, "round %u: %s", round, err.text);
        if (!rc)
            shk_config_free(config);
    }
}
