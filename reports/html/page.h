/* Style sheet and script of the HTML report, embedded from page.css and page.js at build time. */
#ifndef SHK_REPORTS_PAGE_H
#define SHK_REPORTS_PAGE_H

extern const char shk_page_css[];
extern const char shk_page_js[];

/* Opens a box that scrolls sideways, by keyboard too; </div> closes it. `what` is a literal. */
#define SHK_PAGE_SCROLL(what)                                                                      \
    "<div class=\"scroll\" role=\"group\" tabindex=\"0\" aria-label=\"" what "\">"
/* Before the header, and around all between it and the footer. */
#define SHK_PAGE_SKIP "<a class=\"skip\" href=\"#content\">skip to the content</a>\n"
#define SHK_PAGE_MAIN "<main id=\"content\">\n"

#endif
