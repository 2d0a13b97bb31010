# Sourced by experiments/run and tests/run.
# shellcheck shell=bash

# shellcheck disable=SC2034  # used by those who source this
build_packages=(
  build-essential
  cmake
  doctest-dev
  git
  libboost-program-options-dev
  libeigen3-dev
  libfmt-dev
  libhwy-dev
  ninja-build
  nlohmann-json3-dev
)
# Arb is a package of its own in Debian 12, and part of FLINT from FLINT 3 on (Ubuntu 24.04).
if grep -qs '^VERSION_CODENAME=bookworm' /etc/os-release; then
  build_packages+=(libflint-arb-dev)
else
  build_packages+=(libflint-dev)
fi

# as_root COMMAND...: runs it as it is for root, through sudo for others.
as_root() {
  if ((EUID == 0)); then
    "$@"
  else
    sudo "$@"
  fi
}

# install_packages PACKAGE...: installs those that are missing; silent when none is.
install_packages() {
  local missing=() package
  for package in "$@"; do
    if [[ $(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) != installed ]]; then
      missing+=("$package")
    fi
  done
  ((${#missing[@]} > 0)) || return 0

  if ! command -v apt-get >/dev/null || { ((EUID != 0)) && ! command -v sudo >/dev/null; }; then
    echo "flashbound: error: cannot install packages here (apt-get as root or with sudo)." \
      "Missing: ${missing[*]}" >&2
    return 3
  fi
  echo "flashbound: installing ${missing[*]}" >&2
  local install=(env DEBIAN_FRONTEND=noninteractive
    apt-get install -qq -y --no-install-recommends "${missing[@]}")
  # The package lists of a fresh machine are empty, those of an old one stale; usually they do.
  as_root "${install[@]}" >/dev/null 2>&1 && return
  if ! as_root apt-get update -qq >&2 || ! as_root "${install[@]}" >&2; then
    echo "flashbound: error: could not install ${missing[*]}" >&2
    return 3
  fi
}
