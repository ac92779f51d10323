/* Style sheet and script of the HTML report, embedded from page.css and page.js at build time. */
#ifndef SHK_REPORTS_PAGE_H
#define SHK_REPORTS_PAGE_H

extern const char shk_page_css[];
extern const char shk_page_js[];

#endif
