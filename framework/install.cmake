# The installed package: find_package(varve COMPONENTS memory sqlite) gives varve::varve, varve::testing and the adapters
# named. Each component has its own file of targets, so that only what a consumer asks for must be found on its machine.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(varve_package_directory "${CMAKE_INSTALL_LIBDIR}/cmake/varve")

# Installs the targets of one export set, and the public headers beside the calling CMakeLists.txt.
function(varve_install_targets set)
  foreach(target IN LISTS ARGN)
    string(REGEX REPLACE "^varve_" "" name ${target})
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  endforeach()
  install(TARGETS ${ARGN} EXPORT ${set} ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(EXPORT ${set} NAMESPACE varve:: FILE ${set}-targets.cmake DESTINATION "${varve_package_directory}")
  if(IS_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/include")
    install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
  endif()
endfunction()

# varve_install(varve …): the framework itself, which every consumer gets.
function(varve_install)
  varve_install_targets(varve ${ARGN})
endfunction()

# varve_install_component(sqlite REQUIRES SQLite3): the adapter varve_sqlite, and the packages that its users must have.
# NEEDS: other components that it is linked with.
function(varve_install_component component)
  cmake_parse_arguments(ARG "" "" "REQUIRES;NEEDS" ${ARGN})
  varve_install_targets(varve-${component} varve_${component})
  set_property(GLOBAL APPEND PROPERTY varve_components ${component})
  set_property(GLOBAL APPEND_STRING PROPERTY varve_requirements "set(varve_requires_${component} ${ARG_REQUIRES})\n")
  set_property(GLOBAL APPEND_STRING PROPERTY varve_requirements "set(varve_needs_${component} ${ARG_NEEDS})\n")
endfunction()

# The package's entry, once every component is known.
function(varve_install_package)
  get_property(VARVE_COMPONENTS GLOBAL PROPERTY varve_components)
  get_property(VARVE_REQUIREMENTS GLOBAL PROPERTY varve_requirements)
  configure_package_config_file("${PROJECT_SOURCE_DIR}/framework/varve-config.cmake.in"
    "${PROJECT_BINARY_DIR}/varve-config.cmake" INSTALL_DESTINATION "${varve_package_directory}"
    NO_CHECK_REQUIRED_COMPONENTS_MACRO)
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/varve-config-version.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/varve-config.cmake" "${PROJECT_BINARY_DIR}/varve-config-version.cmake"
    DESTINATION "${varve_package_directory}")
endfunction()
