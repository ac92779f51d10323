/* Elements of an array that do not say what they are of. */
#include "core/facts/elements.h"

#include <criterion/criterion.h>

static const struct {
    const char *what, *array;
    bool told;
} cases[] = {
    {"none", "[]", true},
    {"one", "[{'name': 'eth0'}]", true},
    {"one that says nothing", "[{}]", false},
    {"one of which nothing was read", "[{'name': null, 'problems': {'name': 'EACCES'}}]", false},
    {"each has a name", "[{'name': 'a'}, {'name': 'b', 'pci': null}, {'name': 'c'}]", true},
    {"an empty one more", "[{'name': 'a'}, {'name': 'b'}, {}]", false},
    {"an empty one first", "[{}, {'name': 'a'}, {'name': 'b'}]", false},
    {"of one only the kind is left",
     "[{'addr': '0000:01:00.0', 'kind': 'cxi'}, {'addr': '0000:02:00.0', 'kind': 'cxi'}, {'kind': "
     "'cxi'}]",
     false},
    {"of one of two only the kind is left: either form may be the right one",
     "[{'addr': '0000:01:00.0', 'kind': 'cxi'}, {'kind': 'cxi'}]", true},
    {"a member that only some have, and a name that all have",
     "[{'name': 'a', 'path': '/x'}, {'name': 'b', 'path': '/y'}, {'name': 'c', 'path': null}]",
     true},
    {"a GPU whose address was not read is told by its index",
     "[{'pci': '0000:01:00.0', 'index': 0}, {'pci': null, 'index': 1, 'problems': {'pci': 'x'}}, "
     "{'pci': '0000:03:00.0', 'index': 2}]",
     true},
    {"NVLinks of which one leads nowhere",
     "[{'link': 0, 'pci': '0000:01:00.0'}, {'link': 1, 'pci': '0000:02:00.0'}, {'link': 2, 'pci': "
     "null}]",
     true},
    {"nothing that tells any apart", "[{'count': 1}, {'count': 2}, {'bits': 3}]", true},
    {"a pair of which one end is left",
     "[{'gpu': 'a', 'peer': 'b'}, {'gpu': 'a', 'peer': 'c'}, {'gpu': 'b'}]", false},
};

Test(elements, told)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_error_t at;
        char text[512];
        json_t *array = NULL;
        size_t n = 0;
        for (const char *p = cases[i].array; *p; p++)
            text[n++] = *p == '\'' ? '"' : *p;
        array = json_loadb(text, n, 0, &at);
        cr_assert_not_null(array, "%s: %s", cases[i].what, at.text);
        cr_expect_eq(shk_elements_told(array), cases[i].told, "%s", cases[i].what);
        json_decref(array);
    }
}
