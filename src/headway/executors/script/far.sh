# The far side: a shell that reads its orders from standard input and answers each with one line.
#
# A run lives in a directory of its own, <base>/<job>/<attempt>:
#   begun   made once, by whoever starts the run, with a word of its own (or `barred`, by whoever bars it for ever). It may
#           stay when all the rest is removed, and then says `over`: an order to begin the run may still be on its way.
#           The supervisor adds a line with its process, which leads the run's session, and when it was born; whatever
#           its shell has to say; and at last a line of that word and the exit code, -9 if signal 9 has ended the script.
#           A line counts once it is whole. One file for all of it: what is made and removed is what a run costs a disk
#   out err what the script has written so far; of more than the host should keep, the beginning is in out.head, what
#           was let go before is told in out.cut, and out has a hole there
#   stopped it is to be stopped: a supervisor that has not yet started the script never will
# Orders of the first moment are builtins wherever possible: a fork costs more than everything else here.
case $(type printf) in *builtin*) ;; *) echo "headway: lacking: this shell has no builtin printf"; exit 1 ;; esac
type setsid >/dev/null 2>&1 || { echo "headway: lacking: setsid is not installed (package util-linux or busybox)"; exit 1; }
exec 3>&1 >/dev/null 2>&1
headway_mask=$(umask)
umask 077
headway_boot=
read -r headway_boot </proc/sys/kernel/random/boot_id
nl='
'

# born PID: what tells this process from a later one of the same number; empty if there is none.
born() {
    born=
    if [ -n "$headway_boot" ]; then
        read -r line <"/proc/$1/stat" || return 0
        set -- ${line##*) }
        case $1 in Z | X) ;; *) born=$headway_boot.${20} ;; esac
    elif kill -0 "$1"; then
        born=$(ps -o lstart= -p "$1" | tr -s ' ' .)
    fi
}

# control DIRECTORY: what the run's control file says in whole lines: word, pid and birth, code. What the shell has said may
# hold anything that the job's author wrote, but not the word: that is made up when the run begins.
control() {
    word= pid= birth= code=
    [ -e "$1/begun" ] || return 0
    {
        read -r word || word=
        read -r pid birth || pid=
        while [ -n "$word" ] && read -r line; do
            case $line in "$word "*) code=${line#"$word "} ;; esac
        done
    } <"$1/begun"
}

# state DIRECTORY: none, barred, over, starting, alive PID, ended CODE, or gone.
state() {
    state=none
    [ -e "$1/begun" ] || return 0
    control "$1"
    if [ "$word" = barred ] || [ "$word" = over ]; then
        state=$word
    elif [ -n "$code" ]; then
        state="ended $code"
    elif [ -n "$pid" ]; then
        born "$pid"
        if [ "$born" = "$birth" ]; then
            state="alive $pid"
        elif control "$1" && [ -n "$code" ]; then # it may have ended just now
            state="ended $code"
        else
            state=gone
        fi
    elif [ -e "$1/stopped" ]; then
        state=barred
    else
        state=starting
    fi
}

# members PID: which processes are left of the session or group that this process led; zombies don't count.
members() {
    members=
    if [ -z "$headway_boot" ]; then
        kill -s 0 -- "-$1" && members=-$1
        return 0
    fi
    leader=$1
    for stat in /proc/[0-9]*/stat; do
        read -r line <"$stat" || continue
        process=${line%% *}
        set -- ${line##*) }
        case $1 in Z | X) continue ;; esac
        if [ "$3" = "$leader" ] || [ "$4" = "$leader" ]; then members="$members $process"; fi
    done
}

# left DIRECTORY: which processes of a run still live. A number that now belongs to another process proves that
# nothing is left: the kernel doesn't give it away while a session or group has it.
left() {
    members=
    control "$1"
    [ -n "$pid" ] || return 0
    born "$pid"
    if [ -z "$born" ] || [ "$born" = "$birth" ]; then members "$pid"; fi
}

# once FILE WORD: whether we are the first to make it.
once() {
    set -C
    printf '%s\n' "$2" >"$1"
    made=$?
    set +C
    return $made
}

# rooms DIRECTORY…: for several runs that are to begin, with one fork for all. What fails here, begin will tell.
rooms() { mkdir -p "$@"; }

# begin ORDER JOB ATTEMPT EARLIER NONCE PARTS: start the run, unless it, or one of the earlier ones, has begun.
# PARTS is a function that writes down what the run needs into "$run", and what its supervisor does first into $start.
begin() {
    order=$1
    jobs
    for attempt in $4; do
        run=$2/$attempt
        why=$(mkdir -p "$run" 2>&1) || { refuse; return; }
        once "$run/begun" barred && continue
        state "$run"
        case $state in barred | over) ;; *) printf '%s found %s %s\n' "$order" "$attempt" "$state" >&3; return ;; esac
    done
    run=$2/$3 nonce=$5
    if [ -e "$run/begun" ]; then
        state "$run"
        printf '%s found %s %s\n' "$order" "$3" "$state" >&3
        return
    fi
    if [ ! -d "$run/work" ]; then why=$(mkdir -p "$run/work" 2>&1) || { refuse; return; }; fi
    why='its files could not be written: is the disk full?'
    "$6" || { refuse; return; }
    if once "$run/begun" "$nonce"; then
        # Its text comes in a variable, which only this user can see, and needs no file. By -c instead of standard input,
        # bash would not tell when a signal has ended the script.
        HEADWAY_MASK=$headway_mask HEADWAY_START=$start$nl$headway_supervisor \
            setsid /bin/sh -s "$run" "$nonce" "$order" "$headway_boot" 2>/dev/null 4>>"$run/begun" <<'END' &
eval "$HEADWAY_START"
END
        printf '%s begun\n' "$order" >&3
    else
        state "$run"
        printf '%s found %s %s\n' "$order" "$3" "$state" >&3
    fi
}

refuse() {
    why=${why%%"$nl"*}
    printf '%s refused %s\n' "$order" "${why:-it could not be made}" >&3
}

# look ORDER DIRECTORY: the state of a run, and how many of its processes live.
look() {
    left "$2"
    state "$2"
    count=0
    for member in $members; do count=$((count + 1)); done
    printf '%s state %s %s\n' "$1" "$count" "$state" >&3
}

# stop ORDER DIRECTORY SIGNAL: send it to every process of a run; one that has not begun never will.
stop() {
    if [ ! -e "$2/begun" ]; then
        mkdir -p "$2"
        once "$2/begun" barred
    fi
    # Before the look for its supervisor, which looks for this after it has shown itself: one of the two sees the other.
    printf '' >"$2/stopped"
    left "$2"
    denied=0
    # The group first: all at once, so that none forks between.
    if [ -n "$members" ]; then
        kill -s "$3" -- "-$pid" || kill -s "$3" "-$pid"
        for member in $members; do
            kill -s "$3" "$member" || { kill -0 "$member" && denied=1; }
        done
    fi
    printf '%s sent %s\n' "$1" "$denied" >&3
}

# put FILE TEXT: the text with backslash escapes, so that any byte can be told.
put() { printf '%b' "$2" >"$1"; }

# memory NAME: a directory for secrets in $vault, in memory if there is any.
memory() {
    vault=$run/secrets
    if [ -d /dev/shm ] && [ -w /dev/shm ]; then vault=/dev/shm/headway-$1; fi
    printf '%s\n' "$vault" >"$run/vault" && mkdir "$vault"
}

# clear ORDER DIRECTORY…: remove runs whose end is recorded.
clear() {
    order=$1
    shift
    for run; do forget "$run"; done
    rm -rf "$@"
    count=$#
    for run; do set -- "$@" "${run%/*}"; done
    shift "$count"
    rmdir "$@"
    printf '%s cleared\n' "$order" >&3
}

# bury ORDER DIRECTORY…: the same, but none of them can ever be begun again.
bury() {
    order=$1
    shift
    for run; do
        forget "$run"
        printf 'over\n' >"$run/begun" || continue
        for part in "$run"/*; do
            case $part in */begun) ;; *) rm -rf "$part" ;; esac
        done
    done
    printf '%s buried\n' "$order" >&3
}

# forget DIRECTORY: the secrets of a run are kept apart from it.
forget() {
    if IFS= read -r vault <"$1/vault"; then rm -rf "$vault"; fi
}

# sweep ORDER BASE DAYS: remove what runs have left behind that nobody came back for.
sweep() {
    find "$2" -mindepth 1 -maxdepth 1 -type d -mtime "+$3" | while IFS= read -r job; do
        # What has a line break in its name is not ours.
        case $job in "$2"/*) ;; *) continue ;; esac
        live=
        for run in "$job"/*; do
            state "$run"
            case $state in alive* | starting) live=1 ;; esac
        done
        [ -z "$live" ] || continue
        for run in "$job"/*; do forget "$run"; done
        rm -rf "$job"
    done
    printf '%s swept\n' "$1" >&3
}

# warden KIB KEEP PAUSE: keep what each run has spooled below so many KiB a stream, and so many bytes of its beginning,
# as long as this shell or any run lives: a host's disk must not be filled because nobody reads. What a file loses
# leaves a hole, as the script goes on writing where it was.
warden() {
    born $$
    shell=$born
    while born $$; [ "$born" = "$shell" ] || lives; do
        sleep "$3"
        find "$base" -mindepth 3 -maxdepth 3 \( -name out -o -name err \) -size "+$1k" | while IFS= read -r spool; do
            case $spool in "$base"/*) ;; *) continue ;; esac
            kib=$(du -k "$spool")
            [ "${kib%%[!0-9]*}" -gt "$1" ] || continue
            [ -e "$spool.head" ] || head -c "$2" "$spool" >"$spool.head"
            wc -c <"$spool" >>"$spool.cut" && : >"$spool"
        done
    done
}

# lives: whether any run here does.
lives() {
    for run in "$base"/*/*; do
        state "$run"
        case $state in alive* | starting) return 0 ;; esac
    done
    return 1
}

# guard …: a warden in the background.
guard() { ( trap '' HUP; warden "$@" ) </dev/null 3>&- & }

# serve BASE: where runs live; answers that this shell is ready.
serve() {
    case $1 in /*) base=$1 ;; *) base=${HOME:-$PWD}/$1 ;; esac
    why=$(mkdir -p "$base" 2>&1) || { printf 'headway: lacking: %s\n' "${why%%"$nl"*}" >&3; exit 1; }
    # On ext4, which looks at all that was removed of late near by before it makes a file, keep the runs far from each other:
    # hundreds a second would spend most of their time there. Elsewhere it is refused, and not needed.
    chattr +T "$base"
    printf 'headway: ready %s\n' "$base" >&3
}
