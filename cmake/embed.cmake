# shk_embed_text(<source variable> <symbol> <file> [static]): appends the definition of a string constant
# that holds the file's text to the C source in the variable.
function(shk_embed_text source_var symbol file)
  file(READ ${file} text)
  string(REPLACE "\\" "\\\\" text "${text}")
  string(REPLACE "\"" "\\\"" text "${text}")
  string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
  set(${source_var} "${${source_var}}\n${ARGN} const char ${symbol}[] =\n    \"${text}\";\n" PARENT_SCOPE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
endfunction()
