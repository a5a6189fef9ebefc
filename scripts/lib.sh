# Functions of the scripts. Source it; do not run it.
# Downloads come from apt, rustup, crates.io, npm and PyPI only.

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
export PATH="$HOME/.cargo/bin:$PATH"
tools="$root/target/tools"

say() { printf '\033[1m==>\033[0m %s\n' "$*"; }
fail() {
  printf '\033[31merror:\033[0m %s\n' "$*" >&2
  exit 1
}

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "this needs root: $*. Run it as root, or install sudo, then start again."
  fi
}

# apt_install PACKAGE...: installs those that are missing.
apt_install() {
  local missing=() package
  for package in "$@"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null ||
    fail "please install ${missing[*]} with the package manager of this system; this script uses apt only."
  say "installing ${missing[*]} (apt)"
  local log
  log=$(mktemp)
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq update >"$log" 2>&1 &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends -y "${missing[@]}" \
      >>"$log" 2>&1 ||
    { tail -n 20 "$log" >&2 && fail "apt could not install ${missing[*]}; the end of its output is above."; }
  rm -f "$log"
}

# ensure_rust: a C compiler, and the toolchain of rust-toolchain.toml.
ensure_rust() {
  apt_install build-essential ca-certificates
  if ! command -v rustup >/dev/null; then
    apt_install curl
    say "installing rustup"
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs |
      sh -s -- -y -q --profile minimal --default-toolchain none --no-modify-path ||
      fail "rustup could not be installed; install it from https://rustup.rs, then start again."
  fi
  local channel target
  channel=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
  target=$(sed -n 's/^targets = \["\(.*\)"\]/\1/p' rust-toolchain.toml)
  if ! rustup run "$channel" rustc --version >/dev/null 2>&1; then
    say "installing Rust $channel"
    rustup toolchain install "$channel" --profile minimal --component clippy,rustfmt --target "$target" >/dev/null 2>&1 ||
      fail "rustup could not install Rust $channel; see what 'rustup toolchain install $channel' says."
  fi
  # (no pipe into grep -q: with pipefail an early exit of grep would look like a missing target)
  case $'\n'"$(rustup target list --installed --toolchain "$channel")"$'\n' in
    *$'\n'"$target"$'\n'*) ;;
    *)
      say "installing the $target target"
      rustup target add "$target" --toolchain "$channel" >/dev/null 2>&1 ||
        fail "rustup could not add $target; see what 'rustup target add $target --toolchain $channel' says."
      ;;
  esac
}

# ensure_chromium: a Chromium, fonts, and for root the user of the browser processes.
ensure_chromium() {
  if [ -z "${PLATEN_CHROMIUM:-}" ] && [ ! -x /usr/lib/chromium/chromium-headless-shell ] &&
    ! command -v google-chrome chromium chrome >/dev/null; then
    command -v apt-get >/dev/null ||
      fail "please install chromium-headless-shell, or set PLATEN_CHROMIUM to a Chromium or Chrome."
    [ -n "$(apt-cache policy chromium-headless-shell 2>/dev/null)" ] || as_root apt-get -qq update >/dev/null 2>&1 || true
    [ -n "$(apt-cache policy chromium-headless-shell 2>/dev/null)" ] ||
      fail "this system has no package chromium-headless-shell (Debian has). Install Google Chrome, or set PLATEN_CHROMIUM to a Chromium, then start again."
    apt_install chromium-headless-shell
  fi
  apt_install fonts-liberation util-linux
  if [ "$(id -u)" = 0 ] && ! id platen >/dev/null 2>&1; then
    say "creating the system user platen, which browsers run as"
    useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin platen ||
      fail "the user platen could not be created; create it with useradd, then start again."
  fi
}

# ensure_npm: Node and npm.
ensure_npm() {
  command -v npm >/dev/null || apt_install nodejs npm
}

# cargo_build ARGUMENT...: `cargo build` with its progress, and its warnings and errors.
cargo_build() {
  cargo build --locked "$@" 2>&1 | {
    local line count=0 pending=
    while IFS= read -r line; do
      case "$line" in
        *" Compiling "*)
          count=$((count + 1))
          if [ -t 1 ]; then
            pending=yes
            printf '\r\033[K    compiled %s crates, now %s' "$count" "${line##* Compiling }"
          elif [ $((count % 50)) = 0 ]; then
            printf '    compiled %s crates\n' "$count"
          fi
          ;;
        *" Downloaded "* | *" Downloading "* | *" Locking "* | *" Updating "* | *" Finished "* | *" Blocking "*) ;;
        *) printf '%s%s\n' "${pending:+$'\n'}" "$line" && pending= ;;
      esac
    done
    [ -z "$pending" ] || printf '\r\033[K'
  }
}

# build_components: the WebAssembly components, at the paths of spin.toml.
build_components() {
  say "building the components (WebAssembly)"
  cargo_build -p platen-edge -p platen-dashboard --profile component --target wasm32-wasip2
}

# listen_address VALUE NAME: VALUE as ADDRESS:PORT. Takes a port (8080, :8080), and localhost and
# other host names in place of an address.
listen_address() {
  local value=$1 name=$2 host port
  case "$value" in
    *:*) host=${value%:*} port=${value##*:} ;;
    *) host=127.0.0.1 port=$value ;;
  esac
  case "$host" in
    "") host=0.0.0.0 ;;
    localhost) host=127.0.0.1 ;;
    \[*\]) ;;
    *[!0-9.]*)
      host=$(getent ahostsv4 "$host" | sed -n '1s/ .*//p')
      [ -n "$host" ] || fail "$name is \"$value\", but this machine knows no address of that host. Use an address and a port, such as 127.0.0.1:3100."
      ;;
  esac
  case "$port" in
    "" | *[!0-9]* | ??????*) port=0 ;;
  esac
  [ "$port" -ge 1 ] && [ "$port" -le 65535 ] ||
    fail "$name is \"$value\", but must be a port or an address and a port, such as 3100 or 127.0.0.1:3100."
  printf '%s:%s' "$host" "$((10#$port))"
}

# listens ADDRESS:PORT: whether a process accepts connections there.
listens() {
  local host=${1%:*} port=${1##*:}
  host=${host#[} host=${host%]}
  case "$host" in 0.0.0.0) host=127.0.0.1 ;; ::) host=::1 ;; esac
  (exec 3<>"/dev/tcp/$host/$port") 2>/dev/null
}

# A process is identified by its number and its start time, because numbers are used again.
process_identity() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
  # The 22nd field; the second, the name, may contain spaces.
  set -- "$1" ${stat##*) }
  printf '%s %s' "$1" "${21}"
}

# record_process PID FILE: makes FILE name this process.
record_process() { process_identity "$1" >"$2"; }

# recorded_process FILE: prints the number of the process that FILE names; fails if it has ended.
recorded_process() {
  local pid started
  read -r pid started 2>/dev/null <"$1" || [ -n "${pid:-}" ] || return 1
  [ -n "$started" ] && [ "$(process_identity "$pid")" = "$pid $started" ] || return 1
  printf '%s' "$pid"
}
