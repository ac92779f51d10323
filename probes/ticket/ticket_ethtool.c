/* ethtool: the settings of an interface, its driver, its module. */
#include "probes/ticket/ticket_private.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* "Settings for eth0:", "driver: mlx5_core" above "version: …", "	Identifier   : 0x18 (QSFP-DD
 * …)" */
static bool ethtool_starts(char *const *lines, size_t left)
{
    return ticket_after(lines[0], "Settings for ") ||
           (ticket_after(lines[0], "driver: ") && left > 2 && ticket_after(lines[1], "version: ") &&
            ticket_after(lines[2], "firmware-version: ")) ||
           (ticket_value(lines[0], "Identifier") && strstr(lines[0], "FP"));
}

static const char *interface_of(const struct ticket_block *block, char name[64])
{
    const char *p = block->command ? strstr(block->command, "ethtool") : NULL;
    *name = '\0';
    for (p = p ? p + strcspn(p, " ") : NULL; p && *p; p += strcspn(p, " ")) {
        p = ticket_skip(p);
        if (!*p || strchr("|;>&2", *p))
            break;
        if (*p != '-')
            ticket_word(name, 64, p, "|;>");
    }
    for (size_t i = 0; i < block->count; i++)
        if ((p = ticket_after(block->lines[i], "Settings for ")) != NULL)
            ticket_word(name, 64, p, ":");
    return name;
}

/* "Laser rx power high alarm   : On": what is on, in the words of ethtool. */
static void module_alarm(json_t *alarms, const char *line)
{
    const char *name = ticket_skip(line), *colon = strchr(name, ':');
    if (!colon || !strstr(name, " alarm") || strcmp(ticket_skip(colon + 1), "On") != 0)
        return;
    size_t len = (size_t)(colon - name);
    json_array_append_new(alarms, ticket_text(name, len));
}

static void module_read(struct ticket_out *out, const struct ticket_block *block, const char *name)
{
    json_t *alarms = json_array();
    bool seen = false;
    for (size_t i = 0; i < block->count; i++) {
        seen |= strstr(block->lines[i], " alarm ") && strchr(block->lines[i], ':');
        module_alarm(alarms, block->lines[i]);
    }
    if (seen && !block->part) {
        json_t *module = ticket_device(out, "net.modules", "name", ticket_text(name, strlen(name)));
        if (module)
            ticket_member(out, module, "alarms", json_incref(alarms));
    }
    json_decref(alarms);
}

/* Adds to an interface that `ip` showed: alone it is no list. */
static void interface_line(struct ticket_out *out, const char *name, const char *line)
{
    static const char key[] = "net.ifaces";
    char word[64];
    const char *value;
    int speed;
    if (!ticket_has_device(out, key, "name", ticket_text(name, strlen(name))))
        return;
    json_t *iface = ticket_device(out, key, "name", ticket_text(name, strlen(name)));
    if ((value = ticket_value(line, "Speed")) && sscanf(value, "%dMb/s", &speed) == 1)
        ticket_member(out, iface, "speed_mbps", json_integer(speed));
    else if ((value = ticket_value(line, "driver")) && ticket_word(word, sizeof word, value, ""))
        ticket_member(out, iface, "driver", json_string(word));
}

static void ethtool_read(struct ticket_out *out, const struct ticket_block *block)
{
    char name[64];
    bool module = block->command && strstr(block->command, " -m");
    for (size_t i = 0; i < block->count && !module; i++)
        module = ticket_value(block->lines[i], "Identifier") != NULL;
    if (!*interface_of(block, name)) {
        if (block->count)
            out->note = "it is not told which interface, left out";
        return;
    }
    if (module)
        module_read(out, block, name);
    for (size_t i = 0; i < block->count && !module; i++)
        interface_line(out, name, block->lines[i]);
}

const struct ticket_reader ticket_reader_ethtool = {.name = "ethtool",
                                                    .commands = "ethtool",
                                                    .starts = ethtool_starts,
                                                    .read = ethtool_read,
                                                    .names_its_own = true};
