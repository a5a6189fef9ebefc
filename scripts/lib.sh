# Functions of the scripts. Source it; do not run it.
# Downloads come from apt, rustup, crates.io, npm and PyPI only.

set -euo pipefail
# Each script describes itself in the comment at its top. It is printed before anything is done.
case "${1:-}" in
  -h | --help)
    sed -n '2,/^[^#]/s/^# \?//p' "$0"
    exit
    ;;
esac
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
export PATH="$HOME/.cargo/bin:$PATH"
tools="$root/target/tools"

# Colours are for terminals, not for files.
bold= red= plain=
if [ -t 1 ] && [ -t 2 ] && [ -z "${NO_COLOR:-}" ]; then bold=$'\033[1m' red=$'\033[31m' plain=$'\033[0m'; fi
say() { printf '%s==>%s %s\n' "$bold" "$plain" "$*"; }
fail() {
  printf '%serror:%s %s\n' "$red" "$plain" "$*" >&2
  exit 1
}

# no_arguments ARGUMENT...: fails if there is one, for scripts that take none.
no_arguments() { [ $# = 0 ] || fail "unknown argument $1: ${0##*/} takes none"; }

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

# ensure_chromium: a Chromium, and fonts (those of Latin, Greek and Cyrillic only if PLATEN_FONTS is minimal).
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
  case "${PLATEN_FONTS:-full}" in
    full)
      apt_install util-linux fonts-liberation fonts-crosextra-carlito fonts-crosextra-caladea fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji
      ;;
    minimal) apt_install util-linux fonts-liberation fonts-crosextra-carlito fonts-crosextra-caladea ;;
    *) fail "PLATEN_FONTS is '$PLATEN_FONTS'; it must be full or minimal." ;;
  esac
}

# Nothing that has to do with requests or pages runs as root. If root starts it, the server runs as the user platen and
# the farm with its browsers as platen-farm, as the Debian package has them.
is_root() { [ "$(id -u)" = 0 ]; }
# Options of setpriv.
server_user=(--reuid=platen --regid=platen --clear-groups --no-new-privs)
farm_user=(--reuid=platen-farm --regid=platen-farm --clear-groups --no-new-privs)
is_root || server_user=() farm_user=()

# ensure_users: the users of both.
ensure_users() {
  local user
  for user in platen platen-farm; do
    ! id "$user" >/dev/null 2>&1 || continue
    say "creating the system user $user"
    useradd --system --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$user" ||
      fail "the user $user could not be created; create it with useradd, then start again."
  done
}

# data_directory NAME OTHER: prints PLATEN_DATA, or the directory NAME of this clone. For root it prints OTHER if other
# users cannot enter the clone.
data_directory() {
  local default="$root/$1"
  ! is_root || setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$root" || default=$2
  realpath -m "${PLATEN_DATA:-$default}"
}

# install_programs DIRECTORY BUILT: copies the programs in BUILT and the components to DIRECTORY/programs, where all
# users can read them.
install_programs() {
  chmod 711 "$1"
  setpriv "${server_user[@]}" -- test -x "$1" ||
    fail "the user platen cannot enter $1. Choose a directory outside of root's: PLATEN_DATA=/var/lib/my-platen"
  install -d -m 755 "$1/programs"
  install -m 755 "$2"/platen{,-farm} "$1/programs"
  install -m 644 target/wasm32-wasip2/component/platen_{edge,dashboard}.wasm spin.toml "$1/programs"
  sed -i 's|target/wasm32-wasip2/component/||' "$1/programs/spin.toml"
}

# ensure_npm: Node and npm.
ensure_npm() {
  command -v npm >/dev/null || apt_install nodejs npm
}

# npm_packages DIRECTORY NAME: installs what the package-lock.json in the directory names, and sets packages to where it is.
npm_packages() {
  ensure_npm
  packages="$tools/$2-$(sha256sum "$1/package-lock.json" | cut -c1-16)"
  [ ! -e "$packages/installed" ] || return 0
  say "installing the packages of $1 (npm)"
  rm -rf "$packages"
  mkdir -p "$packages"
  cp "$1/package.json" "$1/package-lock.json" "$packages"
  npm ci --prefix "$packages" --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null ||
    fail "npm could not install the packages of $1; see what it says above."
  touch "$packages/installed"
}

# cargo_tool NAME VERSION OPTION...: builds a tool from crates.io, in $tools/bin, with options of cargo install.
cargo_tool() {
  local name=$1 version=$2
  shift 2
  # Each cargo tool prints its version in another way.
  [ -x "$tools/bin/$name" ] && [ "$(cat "$tools/$name.version" 2>/dev/null)" = "$version" ] && return
  say "building $name $version (once, some minutes)"
  CARGO_PROFILE_DEV_DEBUG=false RUSTFLAGS='' \
    cargo install --quiet --locked --debug --root "$tools" --target-dir "$tools/build" "$name" --version "$version" "$@" ||
    fail "$name could not be built; try: cargo install --locked $name --version $version $*"
  [ -x "$tools/bin/$name" ] || fail "cargo install made no $name; see what it says above."
  rm -rf "$tools/build"
  echo "$version" >"$tools/$name.version"
}

# cargo_build ARGUMENT...: `cargo build` with its progress, and its warnings and errors.
cargo_build() {
  # Cargo shows its progress in a line that it writes again and again.
  CARGO_TERM_PROGRESS_WHEN=always CARGO_TERM_PROGRESS_WIDTH=80 cargo build --locked "$@" 2>&1 | stdbuf -o0 tr '\r' '\n' | {
    local line began=$SECONDS pending= built total first= last=0 left
    while IFS= read -r line; do
      case "$line" in
        *" Building ["*)
          line=${line#*] } line=${line%%:*}
          built=${line%/*} total=${line#*/} first=${first:-$built}
          [ "$built" -gt "$last" ] || continue
          left=
          # The last crates take longest, so an early forecast would be too short.
          if [ $((built * 2)) -gt "$total" ] && [ $((built - first)) -ge 50 ]; then
            left=", about $((((SECONDS - began) * (total - built) / (built - first) + 59) / 60)) min left"
          fi
          if [ -t 1 ]; then
            pending=yes last=$built
            printf '\r\033[K    %s of %s steps%s' "$built" "$total" "$left"
          elif [ "$built" -ge $((last + 50)) ] && [ "$built" != "$first" ]; then
            last=$built
            printf '    %s of %s steps%s\n' "$built" "$total" "$left"
          fi
          ;;
        "" | *" Compiling "* | *" Downloaded "* | *" Downloading "* | *" Locking "* | *" Updating "* | *" Finished "* | *" Blocking "*) ;;
        *) printf '%s%s\n' "${pending:+$'\n'}" "$line" && pending= ;;
      esac
    done
    [ -z "$pending" ] || printf '\r\033[K'
  }
}

# spin_problem: prints why Spin cannot be used, and nothing if it can.
spin_problem() {
  command -v spin >/dev/null || { printf 'spin is not on the PATH' && return; }
  local version
  version=$(spin --version 2>/dev/null | sed -n 's/^spin \([0-9]*\.[0-9]*\).*/\1/p')
  [ "$(printf '4.1\n%s\n' "${version:-0}" | sort -V | head -n 1)" = 4.1 ] ||
    printf 'spin %s is on the PATH, but the components need 4.1 or newer' "${version:-of an unknown version}"
}

# remapped_paths: flags for rustc, in the form of CARGO_ENCODED_RUSTFLAGS, after which a build does not contain the
# directories of this machine. Its bytes then do not depend on them.
remapped_paths() {
  printf -- '--remap-path-prefix=%s=/cargo\x1f--remap-path-prefix=%s=/platen' "${CARGO_HOME:-$HOME/.cargo}" "$root"
}

# build_components: the WebAssembly components, at the paths of spin.toml.
build_components() {
  say "building the components (WebAssembly)"
  CARGO_ENCODED_RUSTFLAGS=$(remapped_paths) \
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

# wait_until SECONDS COMMAND...: runs the command ten times a second until it succeeds; fails after SECONDS.
wait_until() {
  local attempts=$(($1 * 10))
  shift
  until "$@"; do
    attempts=$((attempts - 1))
    [ "$attempts" -gt 0 ] || return 1
    sleep 0.1
  done
}

# group_members GROUP: the processes of a process group that have not ended.
group_members() {
  local stat line fields
  for stat in /proc/[0-9]*/stat; do
    { read -r line <"$stat"; } 2>/dev/null || continue
    # After the name, which may contain spaces: the state, the parent and the process group.
    read -ra fields <<<"${line##*) }"
    [ "${fields[2]:-}" != "$1" ] || [ "${fields[0]}" = Z ] || echo "${line%% *}"
  done
}

# group_has_ended GROUP: whether no process of a process group runs.
group_has_ended() { [ -z "$(group_members "$1")" ]; }

# group_listens GROUP PORT: whether a process of the group listens on the TCP port. Unlike a connection to
# the port, this cannot take another process for it.
group_listens() {
  local pid sockets port address state inode
  printf -v port '%04X' "$2"
  for pid in $(group_members "$1"); do
    sockets=$(find "/proc/$pid/fd" -lname 'socket:*' -printf '%l ' 2>/dev/null) || true
    while read -r _ address _ state _ _ _ _ _ inode _; do
      if [ "${address##*:}" = "$port" ] && [ "$state" = 0A ] && [[ "$sockets" = *"socket:[$inode]"* ]]; then
        return 0
      fi
    done < <(cat "/proc/$pid/net/tcp" "/proc/$pid/net/tcp6" 2>/dev/null)
  done
  return 1
}

# farm_answers GROUP ADDRESS:PORT: whether the farm of this process group is ready.
farm_answers() {
  # First that the port is the farm's: jobs with their token must not go to another process.
  group_listens "$1" "${2##*:}" && [ "$(http_status "$(url_of "$2")/readyz")" = 200 ]
}

# free_address: a loopback address with a port on which no process listens.
free_address() {
  local address
  for _ in $(seq 100); do
    # Below the ports that Linux gives to outgoing connections, which begin at 32768.
    address=127.0.0.1:$((20000 + RANDOM % 12000))
    ! listens "$address" || continue
    printf '%s' "$address"
    return
  done
  fail "no free port was found between 20000 and 32000."
}

# url_of ADDRESS:PORT: the URL under which this machine reaches what listens there.
url_of() {
  case "$1" in
    0.0.0.0:*) printf 'http://127.0.0.1:%s' "${1##*:}" ;;
    "[::]:"*) printf 'http://[::1]:%s' "${1##*:}" ;;
    *) printf 'http://%s' "$1" ;;
  esac
}

# http_status URL: prints the status of the response; 000 if there is none.
http_status() { curl -s --noproxy '*' --max-time 10 -o /dev/null -w '%{http_code}' "$1" || true; }

# The functions below run the commands of "$platen" on the database that the environment names.

# invite_first_operator URL FILE: sets operator, and invite to the path of the link with which the first
# operator signs in, or to nothing if an operator exists. The operator works in the account "default". FILE
# keeps the link: a link that was printed before is used until it is spent or has expired, because a new one
# for the same address would replace it.
invite_first_operator() {
  local url=$1 file=$2 invited link
  operator="${PLATEN_OPERATOR:-operator@localhost}"
  invite=
  if [ -s "$file" ]; then
    read -r invited invite <"$file"
    [ "$invited" = "$operator" ] && [ "$(http_status "$url$invite")" = 200 ] || invite=
  fi
  if [ -z "$invite" ]; then
    rm -f "$file"
    # Prints nothing if there is an operator already.
    link=$("$platen" invite "$operator" --operator --first --url "$url" --json 2>/dev/null |
      sed -n 's/.*"link": *"\([^"]*\)".*/\1/p') || true
    invite=${link#"$url"}
    [ -z "$invite" ] || (umask 077 && echo "$operator $invite" >"$file")
  fi
}

# create_first_key: creates the account "default" and sets key to its first key; to nothing if the account
# exists. A key cannot be shown again, because only its hash is stored.
create_first_key() {
  local accounts
  key=
  accounts=$("$platen" account list --json)
  [[ ! "$accounts" =~ \"name\":\ *\"default\" ]] || return 0
  say "creating the account \"default\" with a first API key"
  "$platen" account create default --json >/dev/null
  key=$("$platen" key create --account default --name first --json | sed -n 's/.*"key": *"\(plt_[^"]*\)".*/\1/p')
  [ -n "$key" ] || fail "the first key could not be created; try: $platen key create --account default $database_option"
}

# render_example URL FILE LOG: renders examples/invoice.html with the first key. LOG says where the log is.
render_example() {
  say "rendering examples/invoice.html"
  {
    printf '{"format":"pdf","printBackground":true,"fileName":"invoice","html":'
    "$root/scripts/json-string" <"$root/examples/invoice.html"
    printf '}'
  } | curl -fsS --noproxy '*' --max-time 60 -o "$2" --data-binary @- -H 'content-type: application/json' \
    -H @<(printf 'authorization: Bearer %s' "$key") "$1/v1/render" ||
    fail "the first render failed; the reason is $3. The key of the account \"default\" is $key"
}

# print_first_steps URL FILE: what to do with the key, the rendered file and the operator's link. The last lines are what
# the reader does next: the link, and a request.
print_first_steps() {
  local url=$1 file=$2
  if [ -n "$key" ]; then
    cat <<TXT
Rendered file:  $file
Your API key:   $key
                It is shown only this once. Keep it on servers; never put it in a page or an app.
TXT
  else
    echo "API key:        the account \"default\" has one; another: $platen key create --account default $database_option"
  fi
  [ -z "$invite" ] || cat <<TXT

Set the password of $operator, once within 24 hours:

$url$invite
TXT
  [ -z "$key" ] || cat <<TXT

Render a page:

curl --fail-with-body -o hello.png $url/v1/render -H 'authorization: Bearer $key' -H 'content-type: application/json' -d '{"html": "<h1>Hello</h1>", "width": 600, "height": 200}'
TXT
}
