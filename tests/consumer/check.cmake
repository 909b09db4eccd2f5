# cmake -D BUILD=… -D CONFIG=… -D GENERATOR=… -D COMPILER=… -P check.cmake: installs a finished build into a folder of its
# own, then configures, builds and runs this project against that folder, once with each set of components.
cmake_minimum_required(VERSION 3.25)
set(work "${BUILD}/consumer")
file(REMOVE_RECURSE "${work}")

function(run expectation)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(expectation STREQUAL "succeeds")
    if(NOT status EQUAL 0)
      message(FATAL_ERROR "failed: ${ARGN}\n${said}")
    endif()
  elseif(status EQUAL 0 OR NOT said MATCHES "${expectation}")
    message(FATAL_ERROR "should fail with '${expectation}': ${ARGN}\n${said}")
  endif()
endfunction()

function(configure expectation folder components)
  run("${expectation}" "${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${work}/${folder}" -G "${GENERATOR}"
    -D CMAKE_BUILD_TYPE=${CONFIG} -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_PREFIX_PATH=${work}/prefix
    -D "COMPONENTS=${components}")
endfunction()

run(succeeds "${CMAKE_COMMAND}" --install "${BUILD}" --config ${CONFIG} --prefix "${work}/prefix")

file(GLOB_RECURSE exported "${work}/prefix/*.cmake")
foreach(file IN LISTS exported)
  file(READ "${file}" text)
  foreach(private IN ITEMS varve_build_flags -Werror "${BUILD}/framework")
    string(FIND "${text}" "${private}" at)
    if(NOT at EQUAL -1)
      message(FATAL_ERROR "${file} names what only this tree has: ${private}")
    endif()
  endforeach()
endforeach()

file(GLOB components RELATIVE "${work}/prefix" "${work}/prefix/*/cmake/varve/varve-*-targets.cmake"
  "${work}/prefix/*/*/cmake/varve/varve-*-targets.cmake")
list(TRANSFORM components REPLACE ".*/varve-(.*)-targets.cmake" "\\1")
foreach(component IN LISTS components)
  configure(succeeds ${component} "${component}")
  run(succeeds "${CMAKE_COMMAND}" --build "${work}/${component}")
endforeach()
if("memory" IN_LIST components)
  run(succeeds "${work}/memory/consumer" memory:)
  run("no adapter for scheme 'sqlite'.*known: memory" "${work}/memory/consumer" "sqlite:${work}/consumer.db")
endif()
if("sqlite" IN_LIST components)
  run(succeeds "${work}/sqlite/consumer" "sqlite:${work}/consumer.db")
endif()
configure("has no component 'sqlight' in this installation; it has: testing" unknown "sqlight")
