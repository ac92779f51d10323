#include "checks/readers/readers_together.h"

#include "checks/base/read.h"

#include <stdlib.h>
#include <string.h>

static const struct shk_reader *reader_in(const struct shk_setting *setting, const char *library)
{
    for (size_t i = 0; i < setting->readers_count; i++)
        if (strcmp(setting->readers[i].library, library) == 0)
            return &setting->readers[i];
    return NULL;
}

/* What is sure is taken before what is not, and a reader before none. */
static enum shk_reads better(enum shk_reads a, enum shk_reads b)
{
    static const int rank[] = {[SHK_READS_YES] = 3,
                               [SHK_READS_UNKNOWN] = 2,
                               [SHK_READS_NO] = 1,
                               [SHK_READS_NONE_HERE] = 0};
    return rank[a] >= rank[b] ? a : b;
}

static enum shk_reads worse(enum shk_reads a, enum shk_reads b)
{
    return better(a, b) == a ? b : a;
}

static enum shk_reads ask(struct shk_readers *readers, const struct shk_setting *setting,
                          const struct shk_reader *only, const char **unread_p)
{
    struct shk_setting one = *setting;
    if (only) {
        one.readers = only;
        one.readers_count = 1;
    }
    struct shk_read_answer answer = shk_readers_ask(readers, &one);
    free(answer.text);
    if (!answer.unread)
        answer.unread = answer.disputed;
    if (answer.reads == SHK_READS_YES || (answer.reads == SHK_READS_UNKNOWN && !answer.unread))
        return SHK_READS_YES;
    if (answer.unread && !*unread_p)
        *unread_p = answer.unread;
    return answer.unread ? SHK_READS_UNKNOWN : answer.reads;
}

/* Does one library read all of them? */
static enum shk_reads all_of(struct shk_readers *readers, const struct shk_setting *const *settings,
                             size_t count, const char *library, const char **unread_p)
{
    enum shk_reads all = SHK_READS_YES;
    for (size_t i = 0; i < count; i++)
        all = worse(all, ask(readers, settings[i], reader_in(settings[i], library), unread_p));
    return all;
}

static bool is_common(const struct shk_setting *const *settings, size_t count, const char *library)
{
    for (size_t i = 0; i < count; i++)
        if (!reader_in(settings[i], library))
            return false;
    return true;
}

enum shk_reads shk_readers_together(struct shk_readers *readers,
                                    const struct shk_setting *const *settings, size_t count,
                                    const char **unread_p)
{
    enum shk_reads one_of_them = SHK_READS_NONE_HERE, each = SHK_READS_YES;
    bool common = false;
    *unread_p = NULL;
    for (size_t i = 0; count && i < settings[0]->readers_count; i++) {
        const char *library = settings[0]->readers[i].library;
        if (!is_common(settings, count, library))
            continue;
        common = true;
        one_of_them = better(one_of_them, all_of(readers, settings, count, library, unread_p));
    }
    for (size_t i = 0; !common && i < count; i++)
        if (settings[i]->readers_count)
            each = worse(each, ask(readers, settings[i], NULL, unread_p));
    return common ? one_of_them : each;
}

/* Does each of its readers know it in some releases only? */
static bool is_bounded(const struct shk_setting *setting)
{
    for (size_t i = 0; i < setting->readers_count; i++)
        if (!setting->readers[i].since && !setting->readers[i].until)
            return false;
    return true;
}

enum shk_look shk_read_env_used(struct shk_row *row, const char *name, const char **value_p)
{
    const struct shk_setting *setting = shk_config_setting(row->ctx->config, name);
    const char *value = NULL, *unread = NULL;
    enum shk_look look = shk_read_env(row, name, &value);
    if (look != SHK_LOOK_PRESENT)
        return look;
    struct shk_readers readers = {.facts = row->ctx->facts, .config = row->ctx->config};
    enum shk_reads reads =
        setting ? shk_readers_together(&readers, &setting, 1, &unread) : SHK_READS_YES;
    shk_readers_clear(&readers);
    if (reads == SHK_READS_NO || reads == SHK_READS_NONE_HERE)
        return SHK_LOOK_ABSENT;
    if (reads == SHK_READS_UNKNOWN && is_bounded(setting)) {
        shk_row_lacks(row, unread, "whether %s is read here is not known: %s does not tell", name,
                      unread);
        return SHK_LOOK_FAILED;
    }
    *value_p = value;
    return SHK_LOOK_PRESENT;
}
