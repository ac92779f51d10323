# Include roots: each layer compiles against a tree of links to what it may include, so that a wrong include is a
# compile error. docs/dev/architecture.md draws the layers; tests/tools/layers tries a wrong include in each.

# Links root/<folder> to the source folder of that name.
function(shk_root_folder root folder)
  get_filename_component(parent ${root}/${folder} DIRECTORY)
  file(MAKE_DIRECTORY ${parent})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${folder} ${root}/${folder} SYMBOLIC)
endfunction()

# Links the headers of a layer except the inner ones (*_private.h), one by one.
function(shk_root_public root layer)
  file(GLOB_RECURSE headers RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${layer}/*.h)
  list(FILTER headers EXCLUDE REGEX "_private\\.h$")
  foreach(header ${headers})
    shk_root_folder(${root} ${header})
  endforeach()
endfunction()

# shk_layer(<layer> FOLDERS <folder>… [PUBLIC <layer>…]): the root of a layer, and its use by every target of the
# directory that calls this.
function(shk_layer layer)
  cmake_parse_arguments(arg "" "" "FOLDERS;PUBLIC" ${ARGN})
  set(root ${CMAKE_BINARY_DIR}/inc/${layer})
  file(REMOVE_RECURSE ${root})
  foreach(folder ${arg_FOLDERS})
    shk_root_folder(${root} ${folder})
  endforeach()
  foreach(public ${arg_PUBLIC})
    shk_root_public(${root} ${public})
  endforeach()
  include_directories(${root})
  set(SHK_ROOT ${root} PARENT_SCOPE)
endfunction()
