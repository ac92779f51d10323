/* /proc/kallsyms for the libraries of this process: read once.
 *
 * The kernel makes its 5 MB and more anew for every reader, in 40 ms of the processor, and
 * libfabric 1.17 has it made twice (vrb_set_peer_mem_support() and vrb_set_dmabuf_support() in
 * prov/verbs/src/fi_verbs.c), after its libraries have napped for 0.2 s while they were loaded.
 * What a library is given here is the file, byte for byte, of at most that long ago. */
#ifndef SHK_CORE_READONCE_H
#define SHK_CORE_READONCE_H

/* From now on fopen() of that file for reading, by any library of this process, gives a stream over
 * one reading of it. A thread reads it as soon as a library has been loaded that has its name in
 * it, while that library, or what it is linked with, is still being loaded; else the first fopen()
 * does. What cannot be read is opened as ever, so that the library has the error. Once a process.
 */
void shk_readonce_begin(void);

/* All libraries are loaded: nothing is read any more that nobody has asked for. */
void shk_readonce_loaded(void);

#endif
