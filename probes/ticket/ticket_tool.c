#include "core/text/strbuf.h"
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *ticket_skip(const char *p)
{
    return p + strspn(p, " \t\r\v\f");
}

const char *ticket_value(const char *line, const char *key)
{
    const char *p = ticket_after(ticket_skip(line), key);
    if (!p)
        return NULL;
    p = ticket_skip(p);
    return *p == ':' || *p == '=' ? ticket_skip(p + 1) : NULL;
}

size_t ticket_word(char *out, size_t size, const char *p, const char *stop)
{
    size_t len = 0;
    while (p[len] && !isspace((unsigned char)p[len]) && !strchr(stop, p[len]))
        len++;
    snprintf(out, size, "%.*s", (int)(len < size ? len : size - 1), p);
    return len;
}

bool ticket_long(const char *p, long long *value_p)
{
    char *end;
    errno = 0;
    *value_p = strtoll(p, &end, 10);
    return end != p && !errno && (!*end || isspace((unsigned char)*end));
}

bool ticket_pci(char out[16], const char *text)
{
    unsigned domain = 0, bus, device, function;
    int used = 0;
    text = ticket_skip(text);
    if (sscanf(text, "%8x:%2x:%2x.%1x%n", &domain, &bus, &device, &function, &used) != 4 || !used) {
        domain = 0;
        used = 0;
        if (sscanf(text, "%2x:%2x.%1x%n", &bus, &device, &function, &used) != 3 || !used)
            return false;
    }
    if (domain > 0xffff || device > 31 || function > 7)
        return false;
    snprintf(out, 16, "%04x:%02x:%02x.%x", domain & 0xffffU, bus & 0xffU, device & 0x1fU,
             function & 7U);
    return true;
}

json_t *ticket_text(const char *text, size_t len)
{
    while (len && isspace((unsigned char)text[len - 1]))
        len--;
    return shk_json_text(text, len);
}

json_t *ticket_json(const struct ticket_block *block)
{
    enum { JSON_MAX = 4 << 20 };
    struct shk_strbuf text = SHK_STRBUF_INIT;
    for (size_t i = 0; i < block->count && text.len < JSON_MAX; i++) {
        shk_strbuf_puts(&text, block->lines[i]);
        shk_strbuf_putc(&text, '\n');
    }
    json_t *value =
        text.failed ? NULL : json_loadb(text.data, text.len, JSON_DISABLE_EOF_CHECK, NULL);
    shk_strbuf_free(&text);
    return value;
}

static const char twice[] = "another output says otherwise of the same node; the first one counts";

/* Notes when another value is there already. value NULL: absent. */
static bool put_is_new(struct ticket_out *out, const char *key, const json_t *value)
{
    struct shk_fact fact;
    if (!shk_facts_get(out->facts, key, &fact))
        return true;
    /* several outputs count devices, each in its own way */
    if (fact.value != value && !json_equal(fact.value, value) && !ticket_after(key, "pci.count."))
        out->note = twice;
    return false;
}

void ticket_put(struct ticket_out *out, const char *key, json_t *value, const char *unit)
{
    if (!value) /* bytes that are no text */
        return;
    out->wrote++;
    if (!put_is_new(out, key, value)) {
        json_decref(value);
        return;
    }
    int rc = shk_facts_present(out->facts, key, value, unit, out->source);
    if (rc == -ENOMEM)
        out->rc = rc;
}

void ticket_put_text(struct ticket_out *out, const char *key, const char *text)
{
    ticket_put(out, key, ticket_text(text, strlen(text)), NULL);
}

void ticket_put_int(struct ticket_out *out, const char *key, long long value, const char *unit)
{
    ticket_put(out, key, json_integer(value), unit);
}

void ticket_absent(struct ticket_out *out, const char *key, const char *reason)
{
    out->wrote++;
    if (put_is_new(out, key, NULL) &&
        shk_facts_absent(out->facts, key, out->source, "%s", reason) == -ENOMEM)
        out->rc = -ENOMEM;
}

json_t *ticket_object(struct ticket_out *out, const char *key)
{
    json_t *object = shk_facts_get_object(out->facts, key);
    if (!object) {
        ticket_put(out, key, json_object(), NULL);
        object = shk_facts_get_object(out->facts, key);
    }
    return object;
}

bool ticket_has_device(const struct ticket_out *out, const char *key, const char *id, json_t *value)
{
    json_t *entry;
    size_t i;
    bool found = false;
    json_t *list = shk_facts_get_array(out->facts, key);
    json_array_foreach(list, i, entry) found |= json_equal(json_object_get(entry, id), value) != 0;
    json_decref(value);
    return found;
}

json_t *ticket_device(struct ticket_out *out, const char *key, const char *id, json_t *value)
{
    enum { DEVICES_MAX = 4096 };
    json_t *list = shk_facts_get_array(out->facts, key), *entry;
    size_t i;
    if (!value)
        return NULL;
    if (!list) {
        ticket_put(out, key, json_array(), NULL);
        list = shk_facts_get_array(out->facts, key);
    }
    json_array_foreach(list, i, entry)
    {
        if (json_equal(json_object_get(entry, id), value)) {
            json_decref(value);
            return entry;
        }
    }
    entry = json_object();
    if (list && json_array_size(list) >= DEVICES_MAX) {
        json_decref(entry);
        json_decref(value);
        return NULL;
    }
    if (!list || json_object_set_new(entry, id, value) || json_array_append_new(list, entry)) {
        out->rc = -ENOMEM;
        return NULL;
    }
    out->wrote++;
    return entry;
}

void ticket_member(struct ticket_out *out, json_t *entry, const char *name, json_t *value)
{
    if (!value)
        return;
    out->wrote++;
    if (!entry || json_object_get(entry, name))
        json_decref(value);
    else if (json_object_set_new(entry, name, value))
        out->rc = -ENOMEM;
}
