# SPDX-License-Identifier: GPL-2.0-or-later
# dmig_module(NAME SOURCES... [DEPS module...] [PKG pkg-config-name...])
#
# One static library per folder below lib/. A module sees the headers of the
# modules named in DEPS and no others, so an include that goes upwards or
# sideways fails to compile. Third-party libraries named in PKG are private:
# none of their types may appear in our headers.
find_package(PkgConfig REQUIRED)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

add_library(dmig_flags INTERFACE)
target_compile_definitions(dmig_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64
  DMIG_VERSION="${PROJECT_VERSION}"
  DMIG_LIBEXECDIR="${CMAKE_INSTALL_FULL_LIBEXECDIR}/dmigrate")
target_compile_options(dmig_flags INTERFACE -Wall -Wextra -Wshadow -Wvla -Wmissing-prototypes
  -Wstrict-prototypes -Wformat=2 -Wundef -Wpointer-arith -Wwrite-strings -fno-common)
if(DMIG_WERROR)
  target_compile_options(dmig_flags INTERFACE -Werror)
endif()
if(DMIG_SANITIZE)
  target_compile_options(dmig_flags INTERFACE -fsanitize=${DMIG_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(dmig_flags INTERFACE -fsanitize=${DMIG_SANITIZE})
endif()
if(DMIG_FUZZ)
  target_compile_options(dmig_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(DMIG_COVERAGE)
  target_compile_options(dmig_flags INTERFACE --coverage)
  target_link_options(dmig_flags INTERFACE --coverage)
endif()

function(dmig_module name)
  cmake_parse_arguments(M "" "" "SOURCES;DEPS;PKG" ${ARGN})
  add_library(dmig_${name} STATIC ${M_SOURCES})
  # Headers are included as "NAME/file.h"; each module exports only its own
  # folder, through a directory that holds a single link to it.
  set(inc ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${inc})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${inc}/${name} SYMBOLIC)
  target_include_directories(dmig_${name} PUBLIC ${inc})
  target_link_libraries(dmig_${name} PUBLIC dmig_flags Threads::Threads)
  foreach(dep ${M_DEPS})
    target_link_libraries(dmig_${name} PUBLIC dmig_${dep})
  endforeach()
  foreach(pkg ${M_PKG})
    pkg_check_modules(${pkg} REQUIRED IMPORTED_TARGET ${pkg})
    target_link_libraries(dmig_${name} PRIVATE PkgConfig::${pkg})
  endforeach()
endfunction()
