/* What NVML says of each NVIDIA GPU, judged: shared by the rows of gpu.health. */
#ifndef SHK_CHECKS_GPU_HEALTH_H
#define SHK_CHECKS_GPU_HEALTH_H

#include "checks/base/tally.h"

/* One thing about all GPUs of a node, while they are looked at one after the other. */
struct shk_gpu_view {
    struct shk_row *row;
    const json_t *all; /* value of nvml.health */
    struct shk_tally tally;
    unsigned covered;       /* memory: what was read of every GPU that is good */
    const char *good;       /* what all of them are */
    const char *none;       /* why the row is n/a; NULL: no GPU offers it */
    enum shk_verdict worst; /* SHK_PASS, _NOTE, _WARN or _FAIL */
    const char *diagnosis, *expected, *why, *fix; /* of the worst */
};

/* What one GPU is; a later, worse word about it counts. */
struct shk_gpu_word {
    enum shk_verdict verdict; /* SHK_NA: not offered by this GPU; SHK_UNKNOWN: not read */
    const char *diagnosis, *expected, *why, *fix;
    char *seen; /* what is wrong, behind the address of the GPU; owned, set by shk_row_text() */
};

/* Judges one member: SHK_NA where NVML offers none, SHK_UNKNOWN where it was not read, else
 * SHK_PASS with the value. */
enum shk_verdict shk_gpu_bool(const json_t *gpu, const char *member, bool *value_p);
enum shk_verdict shk_gpu_int(const json_t *gpu, const char *member, long long *value_p);
enum shk_verdict shk_gpu_text(const json_t *gpu, const char *member, const char **value_p);

/* The more telling of two: a fault, what was not read, a note, pass, not offered. */
enum shk_verdict shk_gpu_both(enum shk_verdict a, enum shk_verdict b);

/* Of two that only say something together: not read, else not offered, else pass. */
enum shk_verdict shk_gpu_pair(enum shk_verdict a, enum shk_verdict b);

/* Judgements of one GPU, one for each row. */
void shk_gpu_judge_memory(struct shk_gpu_view *view, const json_t *gpu, struct shk_gpu_word *word);
void shk_gpu_judge_clocks(struct shk_gpu_view *view, const json_t *gpu, struct shk_gpu_word *word);
void shk_gpu_judge_power(struct shk_gpu_view *view, const json_t *gpu, struct shk_gpu_word *word);
void shk_gpu_judge_mode(struct shk_gpu_view *view, const json_t *gpu, struct shk_gpu_word *word);
void shk_gpu_judge_links(struct shk_gpu_view *view, const json_t *gpu, struct shk_gpu_word *word);
void shk_gpu_judge_processes(struct shk_gpu_view *view, const json_t *gpu,
                             struct shk_gpu_word *word);

void shk_gpu_judge_firmware(struct shk_gpu_view *view, const json_t *gpu,
                            struct shk_gpu_word *word);
void shk_gpu_judge_sram(struct shk_gpu_view *view, const json_t *gpu, struct shk_gpu_word *word);
void shk_gpu_judge_licence(struct shk_gpu_view *view, const json_t *gpu, struct shk_gpu_word *word);
/* Of an entry of nvml.devices. */
void shk_gpu_judge_fabric(struct shk_gpu_view *view, const json_t *gpu, struct shk_gpu_word *word);

/* The row about confidential computing, which is set for all GPUs of a node. */
void shk_gpu_confidential(struct shk_row *row, struct shk_findings *findings);

/* True when `verdict` is the worst about the GPU so far; its words are then to be set. */
bool shk_gpu_worst(struct shk_gpu_word *word, enum shk_verdict verdict);

/* Who else holds the GPU at that address and still runs, as "1642
 * python3 of user 0", the caller's; NULL: nobody that is known. *pid_p: the first one's. */
char *shk_gpu_holder(const struct shk_facts *facts, const char *pci, long long *pid_p);

#endif
