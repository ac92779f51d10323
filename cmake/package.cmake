# Run by cpack over the installed tree before a package is made of it: what only packages have.
#   both: copyright; /etc/shakedown with examples, as configuration that an update keeps
#   DEB: the changelogs and the compressed manual page that Debian's rules want
if(NOT CPACK_GENERATOR MATCHES "^(DEB|RPM)$")
  return()
endif()
set(source ${CMAKE_CURRENT_LIST_DIR}/..)
set(tree ${CPACK_TEMPORARY_DIRECTORY})
file(COPY ${source}/config/etc/settings ${source}/config/etc/profiles
     DESTINATION ${tree}/etc/shakedown FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
set(docs ${tree}/usr/share/doc/${CPACK_PACKAGE_NAME})
file(COPY ${source}/cmake/copyright DESTINATION ${docs}
     FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
configure_file(${source}/CHANGELOG.md ${docs}/changelog COPYONLY)
set(LC_ALL $ENV{LC_ALL})
set(ENV{LC_ALL} C)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
set(ENV{LC_ALL} "${LC_ALL}")
file(WRITE ${docs}/changelog.Debian
"${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium

  * What is new in ${CPACK_PACKAGE_VERSION} stands in changelog.gz.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
file(GLOB pages ${tree}/usr/share/man/man*/*.[1-9])
execute_process(COMMAND gzip -9nf ${docs}/changelog ${docs}/changelog.Debian ${pages} COMMAND_ERROR_IS_FATAL ANY)
file(CHMOD ${docs}/changelog.gz ${docs}/changelog.Debian.gz PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
