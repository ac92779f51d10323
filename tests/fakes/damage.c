/* Makes broken files out of a good plugin: damage <plugin> <directory> writes
 * <directory>/<case>/libnccl-net.so for each case. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void damage_write(const char *dir, const char *name, const void *data, size_t len)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s/libnccl-net.so", dir, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, len, f) != len || fclose(f) != 0) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    static unsigned char data[1 << 20];
    FILE *f = argc == 3 ? fopen(argv[1], "rb") : NULL;
    size_t len = f ? fread(data, 1, sizeof data, f) : 0;
    if (len < sizeof(Elf64_Ehdr) || len == sizeof data) {
        fprintf(stderr, "damage: cannot use %s\n", argc == 3 ? argv[1] : "(no file)");
        return 1;
    }
    fclose(f);
    static const char text[] = "GROUP ( /usr/lib/libnccl-net.so )\n";
    damage_write(argv[2], "empty_file", "", 0);
    damage_write(argv[2], "text_file", text, sizeof text - 1);
    damage_write(argv[2], "truncated", data, len / 3);
    Elf64_Ehdr header;
    memcpy(&header, data, sizeof header);
    Elf64_Half machine = header.e_machine;
    header.e_machine = machine == EM_AARCH64 ? EM_X86_64 : EM_AARCH64;
    memcpy(data, &header, sizeof header);
    damage_write(argv[2], "wrong_machine", data, len);
    header.e_machine = machine;
    header.e_type = ET_EXEC;
    memcpy(data, &header, sizeof header);
    damage_write(argv[2], "executable", data, len);
    return 0;
}
