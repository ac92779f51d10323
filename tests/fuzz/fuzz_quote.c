/* Any text, quoted for each target: what the target reads is that text, or there is no word. Then
 * as a value of a fix: the line is the template with one more word in it, or there is none. */
#include "checks/base/remedy.h"
#include "fuzz.h"
#include "unquote.h"

#include <stdlib.h>

static void quote_fix(const char *value, char *back)
{
    static const char head[] = "export X_TEST=";
    const struct shk_fix_value values[] = {{"value", value}};
    char *line = shk_remedy_command("export X_TEST={value}", values, 1);
    if (line && (strncmp(line, head, sizeof head - 1) != 0 ||
                 (line[sizeof head - 1] && (!unquote(SHK_QUOTE_SH, line + sizeof head - 1, back) ||
                                            strcmp(back, value) != 0))))
        abort();
    json_t *edits = line ? shk_remedy_edits("export X_TEST={value}", values, 1) : NULL;
    const char *edit = json_string_value(json_object_get(json_array_get(edits, 0), "value"));
    if (line && (!edit || strcmp(edit, value) != 0))
        abort();
    json_decref(edits);
    free(line);
    line = shk_remedy_command("ls {value}", values, 1);
    if (line && (*value == '-' || strchr(line, '\n')))
        abort();
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup((const char *)data, size), *back = malloc(6 * size + 16);
    for (int target = 0; text && back && target < SHK_QUOTE_COUNT; target++) {
        char *word = shk_quote((enum shk_quote)target, text);
        if (word && (!unquote((enum shk_quote)target, word, back) || strcmp(back, text) != 0))
            abort();
        free(word);
        free(shk_quote_expanding((enum shk_quote)target, text));
    }
    if (text && back)
        quote_fix(text, back);
    free(text);
    free(back);
    return 0;
}
