#!/usr/bin/env bash
# Runs on a card what has to be known of ladechat there, in at most eight minutes, cheapest truth first.
#
#   tools/on_a_card.sh wheels FOLDER [PYTHON]   Fetch into FOLDER what a machine with torch and transformers, but without
#                                               a package registry, lacks; PYTHON (3.12) is the version there.
#   tools/on_a_card.sh run FOLDER RESULTS       There: install it aside, run every part, write into RESULTS.
#   tools/on_a_card.sh check RESULTS            The same parts on a CPU, on tiny models: do they run?
#
# Each part has its own limit and its own file, so that one that hangs or fails costs no other. LADECHAT_PARTS names the
# parts to run, separated by spaces; by default all. PYTHON names the interpreter.
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

missing=(annotated-doc linkify-it-py mdit-py-plugins msgspec platformdirs rich
    textual tomlkit torchao typer uc-micro-py)

fetch() {
    mkdir -p "$1"
    local pins=() platforms=() name
    for name in "${missing[@]}"; do
        pins+=("$(grep -i "^${name//[-_]/[-_]}==" constraints.txt || echo "$name")")
    done
    for version in 2_39 2_34 2_28 2_27 2_24 2_17; do platforms+=(--platform "manylinux_${version}_x86_64"); done
    "$python" -m pip download --quiet --no-deps --only-binary=:all: --python-version "${2:-3.12}" --implementation cp \
        "${platforms[@]}" --platform manylinux2014_x86_64 --dest "$1" "${pins[@]}"
}

part() { # NAME SECONDS COMMAND...
    local name=$1 limit=$2 started=$SECONDS status
    shift 2
    [[ " ${LADECHAT_PARTS:-$name} " == *" $name "* ]] || return 0
    [ "$device" = cuda ] || limit=0  # a check waits for as long as it takes
    timeout --kill-after=5 "$limit" "$@" >"$results/$name.txt" 2>&1 </dev/null
    status=$?
    [ $status -eq 0 ] || failed+=("$name")
    echo "== $name: $([ $status -eq 0 ] && echo done || echo "exit code $status"), $((SECONDS - started)) s"
    tail -n 6 "$results/$name.txt" | cut -c 1-200
}

parts() {
    mkdir -p "$results"
    export PYTHONUNBUFFERED=1 XDG_DATA_HOME="$results/data" XDG_CACHE_HOME="$results/cache"
    failed=()
    part large 160 "$python" -m benchmarks.gpu --quick "$@" --json "$results/large.json"
    part exact 90 "$python" -m ladechat bench --device "$device" --dtype float32 --rounds 1 --questions chat \
        --max-new-tokens "$tokens" --json "$results/exact.json"
    part auto 40 "$python" -m ladechat bench --device "$device" --dtype float32 --rounds 4 --questions chat \
        --decoders auto --max-new-tokens "$tokens" --json "$results/auto.json"
    part small 110 "$python" -m benchmarks.gpu --small --quick "$@" --json "$results/small.json"
    part ask 30 "$python" -m ladechat ask --device "$device" --dtype float32 --max-new-tokens 48 "Why is the sky blue?"
    # On a CPU 8 bits are computed by kernels, which need a compiler: this checks the way that a card takes.
    [ "$device" = cpu ] || part int8 40 "$python" -m ladechat ask --device "$device" --dtype bfloat16 --quantize int8 \
        --max-new-tokens 48 "Why is the sky blue?"
    rm -rf "$results/data" "$results/cache"
    [ ${#failed[@]} -eq 0 ] || { echo "Failed: ${failed[*]}." >&2; return 1; }
}

case ${1:-} in
wheels) fetch "${@:2}" ;;
run)
    site=$(mktemp -d) results=$3 device=cuda tokens=48
    "$python" -m pip install --quiet --no-index --no-deps --no-compile --upgrade --target "$site" "$2"/*.whl || exit
    PYTHONPATH=$site:$PWD${PYTHONPATH:+:$PYTHONPATH}
    export PYTHONPATH
    parts
    ;;
check)
    results=$2 device=cpu tokens=12
    parts --check
    ;;
*)
    sed -n '2,12s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
