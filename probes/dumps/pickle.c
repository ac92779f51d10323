#include "probes/dumps/pickle.h"
#include "core/facts/facts.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct item {
    json_t *value;  /* NULL: a mark */
    unsigned depth; /* levels below and with this one */
    bool fixed;     /* a tuple: nothing may be put into it */
};

struct machine {
    const unsigned char *p, *start, *end;
    struct item *stack;
    size_t count, cap;
    /* Texts, numbers, and tuples of them; value NULL: anything else, as a list that is met again
     * could hold itself. */
    struct item *memo;
    size_t memo_count, memo_cap;
    size_t containers;
    int rc;
    const char *why;
};

enum { MEMO_MAX = 4000000, STACK_MAX = 4000000 };

static void fail(struct machine *m, int rc, const char *why)
{
    if (!m->rc) {
        m->rc = rc;
        m->why = why;
    }
}

static void push(struct machine *m, json_t *value, unsigned depth)
{
    if (m->count == m->cap && !m->rc) {
        size_t cap = m->cap ? m->cap * 2 : 256;
        struct item *stack = cap > STACK_MAX ? NULL : realloc(m->stack, cap * sizeof *stack);
        if (!stack)
            fail(m, cap > STACK_MAX ? -E2BIG : -ENOMEM, "too many values");
        else
            m->stack = stack, m->cap = cap;
    }
    if (m->rc) {
        json_decref(value);
        return;
    }
    m->stack[m->count++] = (struct item){.value = value, .depth = depth};
}

/* A value that cannot be NULL unless memory ran out. */
static void push_new(struct machine *m, json_t *value)
{
    if (!value)
        fail(m, -ENOMEM, "out of memory");
    else
        push(m, value, 0);
}

static void push_container(struct machine *m, json_t *value)
{
    if (++m->containers > SHK_PICKLE_CONTAINERS_MAX)
        fail(m, -E2BIG, "too many lists");
    if (!value)
        fail(m, -ENOMEM, "out of memory");
    else
        push(m, value, 1);
}

/* The number of bytes of an argument, little endian; -1 beyond the end. */
static long long number(struct machine *m, size_t bytes)
{
    uint64_t value = 0;
    if ((size_t)(m->end - m->p) < bytes) {
        fail(m, -EINVAL, "it ends in the middle");
        return -1;
    }
    for (size_t i = 0; i < bytes; i++)
        value |= (uint64_t)m->p[i] << (8 * i);
    m->p += bytes;
    return value > INT64_MAX ? -1 : (long long)value;
}

static const unsigned char *bytes(struct machine *m, long long len)
{
    if (m->rc || len < 0 || len > m->end - m->p) {
        fail(m, -EINVAL, "it ends in the middle");
        return NULL;
    }
    m->p += len;
    return m->p - len;
}

static void push_text(struct machine *m, long long len)
{
    const unsigned char *text = bytes(m, len);
    if (text)
        push_new(m, shk_json_text((const char *)text, (size_t)len));
}

/* A signed number of `len` bytes, little endian. */
static void push_long(struct machine *m, long long len)
{
    const unsigned char *p = bytes(m, len);
    uint64_t value = 0;
    if (!p)
        return;
    if (len > 8) {
        push(m, json_null(), 0);
        return;
    }
    for (long long i = 0; i < len; i++)
        value |= (uint64_t)p[i] << (8 * i);
    if (len && len < 8 && p[len - 1] & 0x80)
        value |= ~(uint64_t)0 << (8 * len);
    push_new(m, json_integer((json_int_t)value));
}

static void push_float(struct machine *m)
{
    const unsigned char *p = bytes(m, 8);
    uint64_t bits = 0;
    double value;
    for (int i = 0; p && i < 8; i++)
        bits = bits << 8 | p[i]; /* big endian */
    memcpy(&value, &bits, sizeof value);
    if (p) {
        json_t *real = json_real(value); /* NULL: not finite */
        push(m, real ? real : json_null(), 0);
    }
}

static void memo_put(struct machine *m, long long index)
{
    if (m->rc || index < 0 || index > MEMO_MAX || !m->count || !m->stack[m->count - 1].value) {
        fail(m, -EINVAL, "it remembers what is not there");
        return;
    }
    if ((size_t)index >= m->memo_cap) {
        size_t cap = m->memo_cap ? m->memo_cap : 256;
        while (cap <= (size_t)index)
            cap *= 2;
        struct item *memo = realloc(m->memo, cap * sizeof *memo);
        if (!memo) {
            fail(m, -ENOMEM, "out of memory");
            return;
        }
        memset(memo + m->memo_cap, 0, (cap - m->memo_cap) * sizeof *memo);
        m->memo = memo;
        m->memo_cap = cap;
    }
    struct item top = m->stack[m->count - 1];
    bool safe = !top.depth || (top.fixed && top.depth == 1);
    json_decref(m->memo[index].value);
    m->memo[index] = safe ? top : (struct item){.value = NULL};
    json_incref(m->memo[index].value);
}

static void memo_get(struct machine *m, long long index)
{
    bool known = index >= 0 && (size_t)index < m->memo_cap && m->memo[index].value;
    struct item found = known ? m->memo[index] : (struct item){.value = json_null()};
    push(m, json_incref(found.value), found.depth);
    if (!m->rc)
        m->stack[m->count - 1].fixed = found.fixed;
}

/* Items above the last mark, which goes away; *first_p: the lowest. False: there is no mark. */
static bool above_mark(struct machine *m, size_t *first_p)
{
    size_t i = m->count;
    while (i && m->stack[i - 1].value)
        i--;
    if (!i) {
        fail(m, -EINVAL, "a mark is missing");
        return false;
    }
    *first_p = i;
    return true;
}

static void drop(struct machine *m, size_t to)
{
    while (m->count > to)
        json_decref(m->stack[--m->count].value);
}

static void grow(struct machine *m, struct item *into, unsigned depth)
{
    if (depth + 1 > into->depth)
        into->depth = depth + 1;
    if (into->depth > SHK_PICKLE_DEPTH_MAX)
        fail(m, -E2BIG, "too deeply nested");
}

/* Puts items from `first` on into the list at `list`; the stack then ends at `to`. */
static void append(struct machine *m, size_t list, size_t first, size_t to)
{
    if (m->rc)
        return;
    struct item *into = &m->stack[list];
    if (!json_is_array(into->value) || into->fixed)
        fail(m, -EINVAL, "no list to append to");
    for (size_t i = first; i < m->count && !m->rc; i++) {
        grow(m, into, m->stack[i].depth);
        if (!m->stack[i].value || json_array_append(into->value, m->stack[i].value))
            fail(m, -EINVAL, "a value is missing");
    }
    drop(m, to);
}

static void set_items(struct machine *m, size_t dict, size_t first, size_t to)
{
    if (m->rc)
        return;
    struct item *into = &m->stack[dict];
    if (!json_is_object(into->value) || (m->count - first) % 2)
        fail(m, -EINVAL, "no dictionary to set");
    for (size_t i = first; i + 1 < m->count && !m->rc; i += 2) {
        char text[32];
        json_t *key = m->stack[i].value, *value = m->stack[i + 1].value;
        const char *name = json_string_value(key);
        if (json_is_integer(key)) {
            snprintf(text, sizeof text, "%lld", (long long)json_integer_value(key));
            name = text;
        }
        grow(m, into, m->stack[i + 1].depth);
        if (!value)
            fail(m, -EINVAL, "a value is missing");
        else if (name && json_object_set(into->value, name, value))
            fail(m, -EINVAL, "a key is no text");
    }
    drop(m, to);
}

/* A tuple of the top `count` values, or of those above the mark (count < 0). */
static void tuple(struct machine *m, long count, bool dict)
{
    size_t first = m->count - (size_t)count;
    bool mark = count < 0;
    if (mark ? !above_mark(m, &first) : m->count < (size_t)count) {
        fail(m, -EINVAL, "too few values");
        return;
    }
    size_t base = mark ? first - 1 : first, above = m->count;
    push_container(m, dict ? json_object() : json_array());
    if (m->rc)
        return;
    /* what was made stands on top: it takes the values below it, then their place */
    struct item made = m->stack[--m->count];
    for (size_t i = first; i < above && !dict && !m->rc; i++) {
        grow(m, &made, m->stack[i].depth);
        if (!m->stack[i].value || json_array_append(made.value, m->stack[i].value))
            fail(m, -EINVAL, "a value is missing");
    }
    if (dict && above > first)
        fail(m, -EINVAL, "an old form of a dictionary");
    drop(m, base);
    push(m, made.value, made.depth);
    if (!m->rc)
        m->stack[m->count - 1].fixed = !dict;
}

static void one(struct machine *m, bool dict)
{
    size_t need = dict ? 3 : 2;
    if (m->count < need)
        fail(m, -EINVAL, "too few values");
    else if (dict)
        set_items(m, m->count - 3, m->count - 2, m->count - 2);
    else
        append(m, m->count - 2, m->count - 1, m->count - 1);
}

static void many(struct machine *m, bool dict)
{
    size_t first;
    if (!above_mark(m, &first))
        return;
    if (first < 2 || !m->stack[first - 2].value)
        fail(m, -EINVAL, "nothing stands below a mark");
    else if (dict)
        set_items(m, first - 2, first, first - 1);
    else
        append(m, first - 2, first, first - 1);
}

static void pop(struct machine *m, bool mark)
{
    size_t first;
    if (mark ? above_mark(m, &first) : m->count > 0)
        drop(m, mark ? first - 1 : m->count - 1);
    else
        fail(m, -EINVAL, "too few values");
}

static void op_text(struct machine *m, long width)
{
    push_text(m, number(m, (size_t)width));
}

static void op_int(struct machine *m, long width)
{
    push_new(m, json_integer(number(m, (size_t)width)));
}

/* 0: four bytes; else the width of the number of bytes. */
static void op_long(struct machine *m, long width)
{
    push_long(m, width ? number(m, (size_t)width) : 4);
}

static void op_float(struct machine *m, long unused)
{
    (void)unused;
    push_float(m);
}

static void op_constant(struct machine *m, long which)
{
    push(m, which == 1 ? json_true() : which == 0 ? json_false() : json_null(), 0);
}

static void op_skip(struct machine *m, long len)
{
    (void)bytes(m, len);
}

static void op_mark(struct machine *m, long unused)
{
    (void)unused;
    push(m, NULL, 0);
}

static void op_empty(struct machine *m, long dict)
{
    push_container(m, dict ? json_object() : json_array());
}

/* 0: at the next free place. */
static void op_put(struct machine *m, long width)
{
    memo_put(m, width ? number(m, (size_t)width) : (long long)m->memo_count++);
}

static void op_get(struct machine *m, long width)
{
    memo_get(m, number(m, (size_t)width));
}

static void op_tuple(struct machine *m, long count)
{
    tuple(m, count, false);
}

static void op_dict(struct machine *m, long unused)
{
    (void)unused;
    tuple(m, -1, true);
}

static void op_one(struct machine *m, long dict)
{
    one(m, dict != 0);
}

static void op_many(struct machine *m, long dict)
{
    many(m, dict != 0);
}

static void op_pop(struct machine *m, long mark)
{
    pop(m, mark != 0);
}

/* Lib/pickletools.py has the names; STOP is not here. Whatever else there is makes objects. */
static const struct {
    unsigned char op;
    void (*run)(struct machine *m, long arg);
    long arg;
} opcodes[] = {
    {'X', op_text, 4},      {0x8c, op_text, 1},  {0x8d, op_text, 8},    {'T', op_text, 4},
    {'U', op_text, 1},      {'B', op_text, 4},   {'C', op_text, 1},     {0x8e, op_text, 8},
    {'J', op_long, 0},      {'K', op_int, 1},    {'M', op_int, 2},      {0x8a, op_long, 1},
    {0x8b, op_long, 4},     {'G', op_float, 0},  {'N', op_constant, 2}, {0x88, op_constant, 1},
    {0x89, op_constant, 0}, {0x80, op_skip, 1},  {0x95, op_skip, 8},    {'(', op_mark, 0},
    {'}', op_empty, 1},     {']', op_empty, 0},  {')', op_empty, 0},    {'q', op_put, 1},
    {'r', op_put, 4},       {0x94, op_put, 0},   {'h', op_get, 1},      {'j', op_get, 4},
    {0x85, op_tuple, 1},    {0x86, op_tuple, 2}, {0x87, op_tuple, 3},   {'t', op_tuple, -1},
    {'l', op_tuple, -1},    {'d', op_dict, 0},   {'a', op_one, 0},      {'s', op_one, 1},
    {'e', op_many, 0},      {'u', op_many, 1},   {'0', op_pop, 0},      {'1', op_pop, 1},
};

static void step(struct machine *m, unsigned char op)
{
    for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++)
        if (opcodes[i].op == op) {
            opcodes[i].run(m, opcodes[i].arg);
            return;
        }
    fail(m, -EINVAL, "it holds more than data, which is not executed");
}

bool shk_pickle_is(const void *data, size_t len)
{
    const unsigned char *p = data;
    return len > 2 && p[0] == 0x80 && p[1] >= 2 && p[1] <= 5;
}

int shk_pickle_read(json_t **value_p, const void *data, size_t len, struct shk_error *err)
{
    struct machine m = {.p = data, .start = data, .end = (const unsigned char *)data + len};
    bool stopped = false;
    *value_p = NULL;
    while (!m.rc && !stopped) {
        if (m.p == m.end)
            fail(&m, -EINVAL, "it ends in the middle");
        else if (*m.p == '.')
            stopped = true;
        else
            step(&m, *m.p++);
    }
    if (!m.rc && (m.count != 1 || !m.stack[0].value))
        fail(&m, -EINVAL, "it is not one value");
    if (!m.rc)
        *value_p = json_incref(m.stack[0].value);
    drop(&m, 0);
    for (size_t i = 0; i < m.memo_cap; i++)
        json_decref(m.memo[i].value);
    free(m.stack);
    free(m.memo);
    return m.rc ? shk_error_set(err, -m.rc, "not a readable pickle: %s (byte %zu)", m.why,
                                (size_t)(m.p - m.start))
                : 0;
}
