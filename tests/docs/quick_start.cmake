# cmake -D BUILD=… -D CONFIG=… -D GENERATOR=… -D COMPILER=… -P quick_start.cmake: installs a finished build, writes the two
# files of docs/quick-start.md into an empty folder, builds them there and compares what the program prints.
cmake_minimum_required(VERSION 3.25)
set(work "${BUILD}/quick_start")
set(page "${CMAKE_CURRENT_LIST_DIR}/../../docs/quick-start.md")
file(REMOVE_RECURSE "${work}")
file(MAKE_DIRECTORY "${work}/transfer")

function(run)
  execute_process(COMMAND ${ARGN} WORKING_DIRECTORY "${work}/transfer" RESULT_VARIABLE status OUTPUT_VARIABLE said
    ERROR_VARIABLE said)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed: ${ARGN}\n${said}")
  endif()
  set(said "${said}" PARENT_SCOPE)
endfunction()

function(take what file)
  execute_process(COMMAND awk -v what=${what} -f "${CMAKE_CURRENT_LIST_DIR}/snippets.awk" "${page}" RESULT_VARIABLE status
    OUTPUT_FILE "${work}/transfer/${file}")
  file(SIZE "${work}/transfer/${file}" size)
  if(NOT status EQUAL 0 OR size EQUAL 0)
    message(FATAL_ERROR "${page} has no ${what}")
  endif()
endfunction()

take(cmake CMakeLists.txt)
take(program main.cpp)
take(printed expected.txt)
run("${CMAKE_COMMAND}" --install "${BUILD}" --config ${CONFIG} --prefix "${work}/varve")
run("${CMAKE_COMMAND}" -B build -G "${GENERATOR}" -D CMAKE_BUILD_TYPE=${CONFIG} -D CMAKE_CXX_COMPILER=${COMPILER}
  -D CMAKE_PREFIX_PATH=${work}/varve)
run("${CMAKE_COMMAND}" --build build --config ${CONFIG})
run("${work}/transfer/build/transfer")
file(READ "${work}/transfer/expected.txt" expected)
if(NOT said STREQUAL expected)
  message(FATAL_ERROR "the program should print\n${expected}and prints\n${said}")
endif()
