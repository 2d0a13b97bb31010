# Arb, ball arithmetic of any precision (https://arblib.org), with the FLINT that it is built on, or
# that it is part of since FLINT 3: the target Arb::Arb. Installed beside flashbound-config.cmake,
# since neither library has a config.
include(FindPackageHandleStandardArgs)

find_path(Arb_INCLUDE_DIR arb.h PATH_SUFFIXES flint)
find_path(Arb_FLINT_INCLUDE_DIR flint/flint.h)
find_library(Arb_LIBRARY NAMES flint-arb arb flint)
find_library(Arb_FLINT_LIBRARY flint)
# GMP too: inline functions of FLINT call it.
find_library(Arb_GMP_LIBRARY gmp)
mark_as_advanced(
  Arb_INCLUDE_DIR Arb_FLINT_INCLUDE_DIR Arb_LIBRARY Arb_FLINT_LIBRARY Arb_GMP_LIBRARY)

find_package_handle_standard_args(Arb REQUIRED_VARS
  Arb_LIBRARY Arb_FLINT_LIBRARY Arb_GMP_LIBRARY Arb_INCLUDE_DIR Arb_FLINT_INCLUDE_DIR)

if(Arb_FOUND AND NOT TARGET Arb::Arb)
  add_library(Arb::Arb UNKNOWN IMPORTED)
  set_target_properties(Arb::Arb PROPERTIES
    IMPORTED_LOCATION "${Arb_LIBRARY}"
    INTERFACE_LINK_LIBRARIES "${Arb_FLINT_LIBRARY};${Arb_GMP_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${Arb_INCLUDE_DIR};${Arb_FLINT_INCLUDE_DIR}")
endif()
