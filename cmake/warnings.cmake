# Compile options that every target of the project gets.
add_compile_definitions(_GNU_SOURCE SHK_VERSION="${PROJECT_VERSION}")
add_compile_options(-Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla
                    -Wpointer-arith -Wformat=2 -Wno-format-nonliteral -fno-strict-aliasing
                    -fno-common -fstack-protector-strong)
if(SHK_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  if(SHK_FUZZ)
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
else()
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    add_compile_definitions(_FORTIFY_SOURCE=3)
  endif()
endif()
# Sanitized programs are large: lld links them in a third of the time.
find_program(SHK_LLD ld.lld)
if(SHK_SANITIZE AND SHK_LLD AND CMAKE_C_COMPILER_ID STREQUAL "Clang")
  add_link_options(-fuse-ld=lld)
endif()
# tests/tools/hardened says whether it worked.
add_link_options(-Wl,-z,relro,-z,now)
include(CheckPIESupported)
check_pie_supported()
