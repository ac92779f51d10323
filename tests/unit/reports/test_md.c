#include "hostile.h"
#include "sample.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

TestSuite(md, .timeout = 300);

static size_t md_count(const char *line, char c)
{
    size_t n = 0;
    for (; *line; line++)
        n += *line == c;
    return n;
}

/* Skips what is ours in a line: a code span, or one of our few tags; NULL when the '<' or '`' at p
 * is neither. */
static const char *md_skip_own(const char *p)
{
    static const char *const own[] = {"<br>",       "<code>",    "</code>",    "<details>",
                                      "</details>", "<summary>", "</summary>", "<!-- -->"};
    if (*p == '`') {
        const char *end = strchr(p + 1, '`');
        return end ? end + 1 : NULL;
    }
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strncmp(p, own[i], strlen(own[i])) == 0)
            return p + strlen(own[i]);
    return NULL;
}

static bool md_is_fence(const char *line, size_t *ticks)
{
    *ticks = strspn(line, "`");
    return *ticks >= 3;
}

/* Tables keep their columns, nothing of a value is a tag or opens a code block, and every section
 * that is opened is closed. */
static void md_expect_sound(const char *what, char *text)
{
    size_t fence = 0, bars = 0, open = 0, close = 0, ticks;
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (fence) {
            if (md_is_fence(line, &ticks) && ticks >= fence && !line[ticks])
                fence = 0;
            continue;
        }
        if (md_is_fence(line, &ticks)) {
            fence = ticks;
            continue;
        }
        if (*line != '|')
            bars = 0;
        else if (!bars)
            bars = md_count(line, '|');
        cr_expect_eq(md_count(line, '|'), bars, "%s: table breaks: %.200s", what, line);
        open += strstr(line, "<details>") != NULL;
        close += strcmp(line, "</details>") == 0;
        for (const char *p = line; *p; p++) {
            if (*p != '<' && *p != '`')
                continue;
            p = md_skip_own(p);
            cr_assert_not_null(p, "%s: markup gets out: %.200s", what, line);
            p--;
        }
    }
    cr_expect_eq(fence, 0, "%s: open code block", what);
    cr_expect_eq(open, close, "%s: open <details>", what);
}

Test(md, sections)
{
    static const char *const parts[] = {
        "**shakedown: FAIL** on `nid001234`: 1 failed, 1 warning, 3 unknown, 5 passed; profile "
        "`lumi-g`; 1.2 s\n",
        "## Root cause\n",
        "### 1. The interface named in NCCL_SOCKET_IFNAME does not exist\n",
        "*confirmed; for the user to fix*\n",
        "- NCCL_SOCKET_IFNAME: hns3 is no interface",
        "Fix:\n",
        "**Coverage:** 10 settings: 3 tested",
        "## Other settings that failed or warned\n",
        "| WARN | nccl | `NCCL_DEBUG` |",
        "## Collectives\n",
        "<details><summary>All sizes</summary>\n",
        "| size (B) | count (elements) | type | redop | algorithm | time (us) | algbw (GB/s) | "
        "busbw (GB/s) | #wrong |\n",
        "| 4194304 | 1048576 | float | sum | ring | 1093.75 | 3.83 | 3.83 | 0 |\n",
        "<details><summary>Matrix: all settings that apply</summary>\n",
        "| PASS | limits | `memlock` | `unlimited` | tested |",
        "</details>\n",
        "<details><summary>Not covered, and why</summary>\n",
        "- needs a job with more than one node: `FI_CXI_RDZV_THRESHOLD`, `FI_CXI_RX_MATCH_MODE`\n",
        "<details><summary>Environment and versions</summary>\n",
        "| fabric.version | `1.15.2.0` | all |\n",
        "| env.NCCL_SOCKET_IFNAME | `hsn0,hsn1,hsn2,hns3` | all |\n",
        "## How to reproduce\n",
        "```sh\nshakedown --profile auto\n```\n",
        "shakedown 0.1.0\n",
    };
    struct sample s;
    sample_failing(&s);
    char *text = sample_render(&s, "md"), *at = text;
    cr_expect_eq(strncmp(text, parts[0], strlen(parts[0])), 0, "the verdict comes first");
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char *found = strstr(at, parts[i]);
        cr_expect_not_null(found, "'%s' is missing or out of order in:\n%s", parts[i], text);
        at = found ? found : at;
    }
    md_expect_sound("failing", text);
    free(text);
    sample_free(&s);
}

Test(md, nodes_that_differ_are_told_apart)
{
    struct sample s;
    sample_cluster(&s);
    char *text = sample_render(&s, "md");
    cr_expect_not_null(
        strstr(text, "| fabric.version | `1.15.2.0` | nid&#91;001234-001235&#93; |\n"), "%s", text);
    cr_expect_not_null(strstr(text, "| fabric.version | `1.20.1` | nid001236 |\n"));
    cr_expect_not_null(strstr(text, "on `nid[001235-001236]`"));
    md_expect_sound("cluster", text);
    free(text);
    sample_free(&s);
}

Test(md, empty)
{
    struct sample s;
    sample_empty(&s);
    char *text = sample_render(&s, "md");
    cr_expect_not_null(strstr(text, "**shakedown: UNKNOWN**"));
    cr_expect_not_null(strstr(text, "None was run."));
    md_expect_sound("empty", text);
    free(text);
    sample_free(&s);
}

Test(md, hostile)
{
    for (size_t i = 0; i < hostile_count; i++) {
        struct sample s;
        sample_hostile(&s, hostile_texts[i].text);
        char *text = sample_render(&s, "md");
        hostile_expect_clean(hostile_texts[i].name, text);
        md_expect_sound(hostile_texts[i].name, text);
        free(text);
        sample_free(&s);
    }
}

Test(md, a_long_text_fits_a_ticket)
{
    char *big = hostile_long();
    struct sample s;
    sample_hostile(&s, big);
    char *text = sample_render(&s, "md");
    cr_expect_leq(strlen(text), 32000);
    hostile_expect_clean("megabyte", text);
    md_expect_sound("megabyte", text);
    free(text);
    sample_free(&s);
    free(big);
}

/* Many rows: what passed goes first, what failed stays. */
Test(md, limit_drops_the_least_important)
{
    struct sample s;
    sample_failing(&s);
    for (int i = 0; i < 3000; i++) {
        char name[32];
        snprintf(name, sizeof name, "SETTING_%04d", i);
        shk_findings_add(s.findings, &(struct shk_finding_in){.id = "x",
                                                              .family = "many",
                                                              .setting = name,
                                                              .verdict = SHK_PASS,
                                                              .evidence = SHK_DECLARED,
                                                              .observed = "1"});
    }
    s.report.coverage = shk_findings_coverage(s.findings);
    char *text = sample_render(&s, "md");
    cr_expect_leq(strlen(text), 32000);
    cr_expect_not_null(
        strstr(text, "### 1. The interface named in NCCL_SOCKET_IFNAME does not exist"));
    cr_expect_null(strstr(text, "SETTING_0007"));
    cr_expect_not_null(strstr(text, "*3005 more rows (passed) omitted to fit; the "
                                    "JSON and HTML reports have them.*"));
    md_expect_sound("limit", text);
    free(text);
    s.options.limit = 1 << 20;
    text = sample_render(&s, "md");
    cr_expect_not_null(strstr(text, "SETTING_0007"));
    free(text);
    sample_free(&s);
}
