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
# Tables that a tool of the build wrote: long to compile, and nothing to watch in them.
function(shk_data file)
  if(SHK_SANITIZE)
    set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS "-fno-sanitize=all;-O0;-g0")
  endif()
endfunction()
# Sanitized programs are large: lld links them in a third of the time.
find_program(SHK_LLD ld.lld)
if(SHK_SANITIZE AND SHK_LLD AND CMAKE_C_COMPILER_ID STREQUAL "Clang")
  add_link_options(-fuse-ld=lld)
endif()
# tests/tools/hardened says whether it worked.
add_link_options(-Wl,-z,relro,-z,now)
include(CheckPIESupported)
check_pie_supported()
