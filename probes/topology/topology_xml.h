/* hwloc's XML, made fit for an older hwloc. */
#ifndef SHK_PROBES_TOPOLOGY_XML_H
#define SHK_PROBES_TOPOLOGY_XML_H

#include <stdbool.h>

/* Rewrites in place XML that hwloc 3 wrote so that hwloc 2 loads it; true when it did, false (and
 * nothing changed) when xml is of another generation or library, the major version of the hwloc
 * that is to load it, is not 2.
 *
 * hwloc 2 refuses the version alone. What it would misread is osdev_type, an enumeration in 2 and a
 * set of bits in 3 (include/hwloc.h of both, hwloc_obj_osdev_type_e); elements that it does not
 * know it leaves out. */
bool shk_topology_xml_lower(char *xml, unsigned library);

#endif
