# Sourced by tests/run and samples/bank/run: installs what is missing and runs phases with a line of progress each.
# The caller sets `root` to the top of the tree.

logs="$root/build/logs"
cores=$(nproc 2>/dev/null || echo 2)

# What the library needs, and what the tests need besides.
packages_build=(g++ cmake ninja-build ccache libtbb-dev libsqlite3-dev rapidjson-dev libxxhash-dev libcurl4-openssl-dev libssl-dev
    libpq-dev libhowardhinnant-date-dev prometheus-cpp-dev tzdata)
packages_bank=(libcli11-dev libspdlog-dev)
packages_tests=(libgtest-dev sqlite3 postgresql clang-14 libclang-rt-14-dev clang-format-14 spin libboost-dev chromium)
# Node often comes from elsewhere, as one package with npm in it, which Debian's npm does not go with.
command -v node >/dev/null || packages_tests+=(nodejs)
command -v npm >/dev/null || packages_tests+=(npm)

say() { printf '==> %s\n' "$*"; }
die() {
    printf 'error: %s\n' "$*" >&2
    exit 2
}

# install_missing PACKAGE…: quick and silent towards apt when all are there.
install_missing() {
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        say "packages: this system has no apt-get; taking for granted what Debian calls: $*"
        return
    fi
    local package missing=() installed
    installed=" $(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null | sed -n 's/^installed //p' | tr '\n' ' ') "
    for package in "$@"; do
        [[ $installed == *" $package "* ]] || missing+=("$package")
    done
    if ((${#missing[@]} == 0)); then
        say "packages: all $# are installed"
        return
    fi
    local as_root=()
    if ((EUID != 0)); then
        command -v sudo >/dev/null ||
            die "these packages are missing: ${missing[*]}; become root, or install sudo, or run: apt-get install ${missing[*]}"
        as_root=(sudo)
        if ! sudo -n true 2>/dev/null; then
            [[ -t 0 ]] || die "these packages are missing: ${missing[*]}; sudo wants a password and there is no terminal to ask on"
            say "packages: sudo will ask for your password to install: ${missing[*]}"
            sudo -v || die "without sudo, ask an administrator to run: apt-get install ${missing[*]}"
        fi
    fi
    say "packages: installing ${missing[*]}"
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
    # A mirror that we do not need may be down: the installation tells.
    phase "packages: update" "${apt[@]}" update || say "packages: the update failed; trying with the lists that are there"
    phase "packages: install" "${apt[@]}" install --no-install-recommends "${missing[@]}" ||
        die "the packages could not be installed; see above"
}

# --- phases ----------------------------------------------------------------------------------------------------------

phase_names=()
phase_seconds=()
phase_results=()
running=0
# Everything that a phase starts carries this in its environment, so that what outlives it is found.
export VARVE_RUN="$$.$RANDOM$RANDOM"

kill_strays() {
    local file pid strays=()
    for file in $(grep -lsz "^VARVE_RUN=$VARVE_RUN\$" /proc/[0-9]*/environ 2>/dev/null); do
        pid=${file#/proc/}
        pid=${pid%/environ}
        [[ $pid == "$$" || $pid == "$BASHPID" ]] || strays+=("$pid")
    done
    ((${#strays[@]} == 0)) || kill -KILL "${strays[@]}" 2>/dev/null
    return 0
}

leave() {
    local status=$?
    trap - EXIT INT TERM HUP
    ((running == 0)) || kill -KILL -- "-$running" 2>/dev/null
    kill_strays
    exit "$status"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# phase NAME COMMAND…: runs it with its output in a log; one line when it is done, the log's tail when it failed.
phase() {
    local name=$1 log="$logs/${1//[^a-z0-9]/-}.log"
    log=${log//--/-}
    shift
    mkdir -p "$logs"
    local start=$SECONDS status said=0 last
    [[ -t 1 ]] || printf '    %-28s ...\n' "$name"
    set -m
    "$@" >"$log" 2>&1 </dev/null &
    running=$!
    set +m
    while kill -0 "$running" 2>/dev/null; do
        if [[ -t 1 ]]; then
            last=$(tail -n 1 "$log" 2>/dev/null | tr -d '\r' | tr -c '[:print:]' ' ' | cut -c -70)
            printf '\r\e[K    %-28s %4d s  %s' "$name" $((SECONDS - start)) "$last"
        elif ((SECONDS - start >= said + 60)); then
            said=$((SECONDS - start))
            printf '    %-28s %4d s  %s\n' "$name" "$said" "$(tail -n 1 "$log" | cut -c -90)"
        fi
        sleep 0.2
    done
    wait "$running"
    status=$?
    kill -KILL -- "-$running" 2>/dev/null
    running=0
    kill_strays
    [[ ! -t 1 ]] || printf '\r\e[K'
    phase_names+=("$name")
    phase_seconds+=($((SECONDS - start)))
    if ((status == 0)); then
        phase_results+=(ok)
        printf '    %-28s %4d s  ok\n' "$name" $((SECONDS - start))
    else
        phase_results+=(FAILED)
        printf '    %-28s %4d s  FAILED; the end of %s:\n' "$name" $((SECONDS - start)) "${log#"$root"/}"
        tail -n "${VARVE_TAIL_LINES:-60}" "$log" | sed 's/^/    | /'
    fi
    return "$status"
}
