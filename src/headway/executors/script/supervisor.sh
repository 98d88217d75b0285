# Runs the script, records its end in the run's control file, which is open as 4. Leads a session of its own, so that it
# outlives whoever started it.
trap : HUP INT TERM
unset HEADWAY_START
headway_run=$1 headway_word=$2 headway_order=$3 headway_boot=$4 HEADWAY_SECRETS=
if read -r headway_line <"/proc/$$/stat"; then
    set -- ${headway_line##*) }
    headway_born=$headway_boot.${20}
else
    headway_born=$(ps -o lstart= -p $$ | tr -s ' ' .)
fi
printf '%s %s\n' $$ "$headway_born" >&4
headway_hidden=$?
if read -r HEADWAY_SECRETS <"$headway_run/vault"; then
    export HEADWAY_SECRETS
    if [ -e "$HEADWAY_SECRETS/.environment" ]; then . "$HEADWAY_SECRETS/.environment"; fi
fi
# said: whether the control file has more than its first two lines.
headway_said() {
    {
        read -r headway_line
        read -r headway_line
        read -r headway_line || [ -n "$headway_line" ]
    } <"$headway_run/begun"
}
headway_code=126
if [ -e "$headway_run/stopped" ]; then
    headway_code=
elif [ "$headway_hidden" != 0 ]; then
    # Nobody could find it again, or stop it.
    printf 'headway: the run could not be written down, so the script was not started: is the disk full?\n' >"$headway_run/err"
elif cd "$headway_cwd" 2>"$headway_run/err"; then
    umask "$HEADWAY_MASK"
    unset HEADWAY_MASK
    # The shell says something itself only if a signal has ended the script: an exit code above 128 alone proves nothing.
    exec 2>&4
    headway_script
    headway_code=$?
    exec 2>/dev/null
    if [ "$headway_code" -gt 128 ] && headway_said; then headway_code=-$((headway_code - 128)); fi
fi
umask 077
if [ -n "$HEADWAY_SECRETS" ]; then rm -rf "$HEADWAY_SECRETS"; fi
[ -n "$headway_code" ] || exit
trap '' PIPE
# On a line of its own, whatever was said before, or could not be said to its end.
printf '\n%s %s\n' "$headway_word" "$headway_code" >&4
headway_out=0 headway_err=0
[ -s "$headway_run/out" ] && headway_out=1
[ -s "$headway_run/err" ] && headway_err=1
printf '%s ended %s %s %s\n' "$headway_order" "$headway_code" "$headway_out" "$headway_err" >&3
