/* Orders for qsort() and bsearch(). */
#ifndef SHK_CORE_ORDER_H
#define SHK_CORE_ORDER_H

int shk_order_text(const void *a, const void *b); /* of const char * */
int shk_order_double(const void *a, const void *b);
int shk_order_u64(const void *a, const void *b);

#endif
