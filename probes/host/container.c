/* Which container runtime, if any, this process runs in, and what it may not ask of the kernel. */
#include "core/text/uses.h"
#include "probes/base/gather.h"
#include "probes/base/registry.h"
#include "probes/host/syscalls.h"

#include <stdlib.h>
#include <string.h>

/* In order: a runtime's own mark outranks what its host left behind. */
static const struct container_mark {
    const char *kind;
    const char *file;  /* exists inside such containers */
    const char *use;   /* one of its variables is set inside such containers */
    const char *value; /* … to this; NULL: to anything */
} container_marks[] = {
    {.kind = "apptainer", .use = "container.apptainer"},
    {.kind = "apptainer", .file = "/.singularity.d"},
    {.kind = "apptainer", .file = "/singularity"},
    {.kind = "podman", .file = "/run/.containerenv"},
    {.kind = "podman", .use = "container.any", .value = "podman"},
    {.kind = "shifter", .use = "container.shifter"},
    {.kind = "charliecloud", .use = "container.charliecloud"},
    {.kind = "kubernetes", .use = "container.kubernetes"},
    {.kind = "kubernetes", .file = "/var/run/secrets/kubernetes.io"},
    {.kind = "docker", .file = "/.dockerenv"},
    {.kind = "docker", .use = "container.any", .value = "docker"},
    {.kind = "enroot", .use = "container.any", .value = "enroot"},
    {.kind = "lxc", .use = "container.any", .value = "lxc"},
    {.kind = "nspawn", .use = "container.any", .value = "systemd-nspawn"},
    {.kind = "other", .use = "container.any"},
};

/* Pieces of a cgroup path, or of the root mount, that only a runtime puts there. */
static const struct container_word {
    const char *word, *kind;
} container_cgroup_words[] =
    {
        {"kubepods", "kubernetes"},
        {"/docker/", "docker"},
        {"docker-", "docker"},
        {"libpod-", "podman"},
        {"/lxc/", "lxc"},
        {"cri-containerd", "containerd"},
        {NULL, NULL},
},
  container_mount_words[] = {
      /* enroot leaves no file of its own; its root file system lies in its data directory */
      {"/enroot/", "enroot"},
      /* its snapshotters; Docker and Kubernetes over it have been recognised before */
      {"/io.containerd.", "containerd"},
      {NULL, NULL},
};

/* The variable of the mark that is set; NULL: none. */
static const char *container_variable(const struct shk_host *host, const struct container_mark *m)
{
    for (const char *const *v = m->use ? shk_variables(m->use) : NULL; v && *v; v++) {
        const char *value = shk_host_getenv(host, *v);
        if (value && *value && (!m->value || strcmp(value, m->value) == 0))
            return *v;
    }
    return NULL;
}

static const struct container_mark *container_find_mark(const struct shk_host *host)
{
    for (size_t i = 0; i < sizeof container_marks / sizeof *container_marks; i++) {
        const struct container_mark *m = &container_marks[i];
        if (m->file ? shk_host_exists(host, "%s", m->file) : container_variable(host, m) != NULL)
            return m;
    }
    return NULL;
}

static const char *container_find_word(const char *text, const struct container_word *words)
{
    for (; words->word; words++)
        if (strstr(text, words->word))
            return words->kind;
    return NULL;
}

/* The mountinfo line of "/", cut out of text; "" when there is none. */
static const char *container_root_mount(char *text)
{
    char *save;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        char *p = line;
        for (int field = 0; p && field < 4; field++)
            if ((p = strchr(p, ' ')))
                p++;
        if (p && strncmp(p, "/ ", 2) == 0)
            return line;
    }
    return "";
}

static int container_run(struct shk_probe_context *ctx, struct shk_error *err)
{
    struct shk_gather g = shk_gather_begin(ctx);
    struct shk_error why;
    char *cgroup = NULL, *mounts = NULL;
    const char *kind = NULL, *source = "/proc/self/cgroup";
    const struct container_mark *mark = container_find_mark(ctx->host);
    int rc = 0;
    if (mark) {
        kind = mark->kind;
        source = mark->file ? mark->file : container_variable(ctx->host, mark);
    } else if ((rc = shk_host_read(ctx->host, source, &cgroup, NULL, &why)) == 0) {
        kind = container_find_word(cgroup, container_cgroup_words);
        if (!kind && shk_host_read(ctx->host, "/proc/self/mountinfo", &mounts, NULL, NULL) == 0)
            kind = container_find_word(container_root_mount(mounts), container_mount_words);
    }
    if (rc)
        shk_gather_failed(&g, "host.container", source, "no runtime left a mark, and %s", why.text);
    else
        shk_gather_text(&g, "host.container", kind ? kind : "none", source);
    free(cgroup);
    free(mounts);
    shk_syscalls(&g);
    return shk_gather_end(&g, err);
}

static const char *const container_provides[] = {"host.container", "kernel.seccomp",
                                                 "kernel.syscalls", NULL};

const struct shk_probe shk_probe_container = {
    .name = "container",
    .phase = SHK_PHASE_HOST,
    .doc = "container runtime around this process, and system calls that it is refused",
    .provides = container_provides,
    .deadline_ms = 5000,
    .run = container_run,
};
