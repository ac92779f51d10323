# What is installed beside the binary, the packages, and the relocatable tarball.
#   cmake --install BUILD --prefix DIR
#   cpack --config BUILD/CPackConfig.cmake -G DEB|RPM|TGZ
#   cmake --build BUILD --target check_packages     builds, installs and runs them (root, minutes)
include(GNUInstallDirs)
option(SHK_BUNDLE "Install the linked libraries too, for a tarball that needs nothing but glibc" OFF)

set(data ${CMAKE_INSTALL_DATADIR})
if(SHK_BUNDLE)
  set_target_properties(shakedown PROPERTIES INSTALL_RPATH "$ORIGIN/../lib/shakedown")
  install(TARGETS shakedown RUNTIME_DEPENDENCY_SET shakedown_libraries RUNTIME)
  install(RUNTIME_DEPENDENCY_SET shakedown_libraries
          PRE_EXCLUDE_REGEXES "^ld-linux.*" "^lib(c|m|dl|rt|pthread|resolv)\\.so.*"
          DIRECTORIES /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} /usr/lib64
          LIBRARY DESTINATION lib/shakedown)
else()
  install(TARGETS shakedown RUNTIME)
endif()

# Made by the program itself, so that they say what it does; not when it cannot run here.
find_package(Python3 COMPONENTS Interpreter)
set(made ${CMAKE_BINARY_DIR}/made)
if(NOT CMAKE_CROSSCOMPILING OR CMAKE_CROSSCOMPILING_EMULATOR)
  file(MAKE_DIRECTORY ${made})
  set(outputs)
  foreach(shell bash zsh fish)
    add_custom_command(OUTPUT ${made}/completion.${shell}
      COMMAND ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:shakedown> completion ${shell} > ${made}/completion.${shell}
      DEPENDS shakedown VERBATIM)
    list(APPEND outputs ${made}/completion.${shell})
  endforeach()
  if(Python3_FOUND)
    add_custom_command(OUTPUT ${made}/shakedown.1
      COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/cmake/manpage.py $<TARGET_FILE:shakedown>
              ${CMAKE_SOURCE_DIR}/docs/shakedown.1.in ${made}/shakedown.1
              ${CMAKE_CROSSCOMPILING_EMULATOR}
      DEPENDS shakedown ${CMAKE_SOURCE_DIR}/cmake/manpage.py ${CMAKE_SOURCE_DIR}/docs/shakedown.1.in
      VERBATIM)
    list(APPEND outputs ${made}/shakedown.1)
    install(FILES ${made}/shakedown.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  else()
    message(STATUS "No python3: the manual page is left out")
  endif()
  add_custom_target(shakedown_made ALL DEPENDS ${outputs})
  install(FILES ${made}/completion.bash DESTINATION ${data}/bash-completion/completions
          RENAME shakedown)
  install(FILES ${made}/completion.zsh DESTINATION ${data}/zsh/vendor-completions RENAME _shakedown)
  install(FILES ${made}/completion.fish DESTINATION ${data}/fish/vendor_completions.d
          RENAME shakedown.fish)
endif()

install(FILES ${CMAKE_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR}
        FILES_MATCHING PATTERN "*.md" PATTERN "*.png")
install(DIRECTORY ${CMAKE_SOURCE_DIR}/reports/schema DESTINATION ${data}/shakedown
        FILES_MATCHING PATTERN "*.json" PATTERN "*.xsd")
set(slurm ${CMAKE_SOURCE_DIR}/config/slurm)
install(PROGRAMS ${slurm}/prolog.sh ${slurm}/epilog.sh ${slurm}/healthcheck.sh
                 ${slurm}/preflight.sbatch
        DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/shakedown)
install(FILES ${CMAKE_SOURCE_DIR}/config/monitoring/alerts.yaml ${CMAKE_SOURCE_DIR}/config/monitoring/grafana.json
        DESTINATION ${data}/shakedown/monitoring)
install(FILES ${slurm}/shakedown.service ${slurm}/shakedown.timer ${slurm}/reframe_shakedown.py
        DESTINATION ${data}/shakedown/examples)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/config/etc DESTINATION ${data}/shakedown/examples)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/config/kubernetes DESTINATION ${data}/shakedown USE_SOURCE_PERMISSIONS)
install(FILES ${slurm}/nhc.conf ${slurm}/shakedown.nhc DESTINATION ${data}/shakedown/nhc)
configure_file(${CMAKE_SOURCE_DIR}/cmake/shakedown.pc.in ${CMAKE_BINARY_DIR}/shakedown.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/shakedown.pc DESTINATION ${data}/pkgconfig)
install(FILES ${CMAKE_SOURCE_DIR}/cmake/modulefile.lua DESTINATION ${data}/modulefiles/shakedown
        RENAME ${PROJECT_VERSION}.lua)

set(CPACK_PACKAGE_NAME shakedown)
set(CPACK_PACKAGE_VENDOR shakedown)
set(CPACK_PACKAGE_CONTACT "the shakedown maintainers <maintainers@shakedown.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DESCRIPTION
"Tells, before a job burns its allocation, whether a node is fit for GPU
collectives, and if it is not, names the cause and the line to change.
libfabric, NCCL, RCCL, PMIx and the drivers are opened at run time; a
missing one is a finding.")
set(CPACK_STRIP_FILES ON)
set(CPACK_SET_DESTDIR OFF)
set(CPACK_GENERATOR TGZ)
set(CPACK_PACKAGE_FILE_NAME ${CPACK_PACKAGE_NAME}-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/package.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libfabric1, libfabric-bin")
file(GLOB examples RELATIVE ${CMAKE_SOURCE_DIR}/config/etc ${CMAKE_SOURCE_DIR}/config/etc/*/*)
list(TRANSFORM examples PREPEND /etc/shakedown/)
list(JOIN examples "\n" conffiles)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/conffiles CONTENT "${conffiles}\n" @ONLY)
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/conffiles)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_DESCRIPTION "${CPACK_PACKAGE_DESCRIPTION}")
list(TRANSFORM examples PREPEND "%config(noreplace) " OUTPUT_VARIABLE CPACK_RPM_USER_FILELIST)
# shakedown.pc is for who builds against the schemas: no node needs pkg-config for it
set(CPACK_RPM_SPEC_MORE_DEFINE "%global __requires_exclude ^/usr/bin/pkg-config$\n%global packager ${CPACK_PACKAGE_CONTACT}")
set(CPACK_RPM_PACKAGE_GROUP "System/Monitoring")
set(SHK_LICENSE "none granted yet" CACHE STRING "Licence that packages name")
set(CPACK_RPM_PACKAGE_LICENSE "${SHK_LICENSE}")
set(CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/share/man /usr/share/man/man1
    /usr/share/bash-completion /usr/share/bash-completion/completions /usr/share/zsh
    /usr/share/zsh/vendor-completions /usr/share/fish /usr/share/fish/vendor_completions.d
    /usr/share/pkgconfig /usr/share/doc /usr/share/modulefiles /usr/libexec)
include(CPack)

add_custom_target(check_packages
  COMMAND ${CMAKE_SOURCE_DIR}/tests/packages/check ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/packages
  USES_TERMINAL VERBATIM)
add_custom_target(check_image
  COMMAND ${CMAKE_SOURCE_DIR}/tests/packages/image ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/portable/${CMAKE_SYSTEM_PROCESSOR}
  USES_TERMINAL VERBATIM)
add_custom_target(check_portable
  COMMAND ${CMAKE_SOURCE_DIR}/tests/packages/portable ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/portable
  USES_TERMINAL VERBATIM)
