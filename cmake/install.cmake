# An installed prefix gives find_package(flashbound), flashbound::core and flashbound::sim. Headers lie
# in include/flashbound, so that they are included as in this repository: "core/units.hpp".
include(CMakePackageConfigHelpers)

set(flashbound_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/flashbound)

install(TARGETS flashbound_core flashbound_sim
  EXPORT flashbound_targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/flashbound)
install(TARGETS flashbound RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${PROJECT_BINARY_DIR}/flashbound.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(DIRECTORY experiments/activations/
  DESTINATION ${CMAKE_INSTALL_DATADIR}/flashbound/activations
  FILES_MATCHING PATTERN "*.npy" PATTERN "provenance.json" PATTERN "SHA256SUMS")
install(EXPORT flashbound_targets NAMESPACE flashbound:: DESTINATION ${flashbound_config_dir})

configure_package_config_file(cmake/flashbound-config.cmake.in
  ${PROJECT_BINARY_DIR}/flashbound-config.cmake
  INSTALL_DESTINATION ${flashbound_config_dir})
# Before 1.0 a minor release may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/flashbound-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/flashbound-config.cmake
  ${PROJECT_BINARY_DIR}/flashbound-config-version.cmake
  cmake/FindArb.cmake
  DESTINATION ${flashbound_config_dir})
