# The template, as root below a systemd of its own; common.sh stands before it.
unit=staled@dev.service
socket=/run/staled/dev/staled.sock

as_dev() { clean_as 4242 HOME=/home/dev STALED_SOCKET=$socket "$@"; }
shown() { systemctl show -P "$1" $unit; }
told_the_journal() { journalctl -q --no-pager -o cat -u $unit -t staled "$@" | grep -q .; }

# The units, as the program installs them.
see installed 0 "$(staled install systemd --system >/dev/null 2>&1; echo $?)"
see installed-twice "unchanged unchanged " "$(staled install systemd --system 2>/dev/null | awk '{printf "%s ", $1}')"
see verify "" "$(systemd-analyze verify --man=no /etc/systemd/system/staled@.service /etc/systemd/system/staled@.socket $unit 2>&1)"
as_dev staled install systemd --namespaces >/dev/null 2>&1
see verify-user "" "$(as_dev XDG_RUNTIME_DIR=/run/user/4242 systemd-analyze --user verify --man=no /home/dev/.config/systemd/user/staled.service /home/dev/.config/systemd/user/staled.socket 2>&1)"

# Only shorter waits than the unit has, and how each run ended.
mkdir -p /run/systemd/system/$unit.d
cat > /run/systemd/system/$unit.d/test.conf <<'END'
[Service]
WatchdogSec=2s
RestartSec=100ms
ExecStopPost=/bin/sh -c 'echo $$SERVICE_RESULT >> $$STATE_DIRECTORY/results'
END
systemctl daemon-reload

# Cold: only the socket is there, and a request starts the daemon.
systemctl start staled@dev.socket
see cold inactive "$(systemctl is-active $unit)"
see socket-mode "600 dev" "$(stat -c '%a %U' $socket)"
inode=$(stat -c %i $socket)
see answered-from-cold '"confinement":"enforced"' "$(health confinement)"
until_so notify says "every watch is armed"
see active "active running success" "$(shown ActiveState) $(shown SubState) $(shown Result)"
see runs-as dev "$(stat -c %U /proc/$(pid))"
see state "700 dev" "$(stat -c '%a %U' /var/lib/staled/dev)"
see log-of-the-user 0 "$(as_dev test -s /var/lib/staled/dev/decisions.jsonl; echo $?)"
until_so journal-has-the-log-in-fields told_the_journal _UID=4242 STALED_CONFINED=enforced
see nobody-else-gets-in 2 "$(asked_by_another)"

# It sees what the user sees: below the home, below /tmp, and changes there.
for place in /home/dev/project /tmp/project; do
  session=$(echo $place | tr / -); session=s$session
  as_dev mkdir -p $place; written $place one
  registered $session $place
  before=$(decided $session)
  written $place two
  see "sees-what-changes-in-$place" "0 11" "$before $(decided $session)"
done

forks /home/dev/project

# Killed before each of 60 requests, and none of them is lost.
answered=0
for round in $(seq 60); do
  systemctl kill -s KILL $unit 2>/dev/null
  asked >/dev/null && answered=$((answered + 1))
done
see answered-of-60-with-kill 60 $answered
see killed-60-times 60 "$(grep -c '^signal$' /var/lib/staled/dev/results)"

# One that hears nothing is killed by the watchdog, and who asked meanwhile is answered by the next.
until_so ready-again says "every watch is armed"
old=$(pid); kill -STOP "$old"
asked >/dev/null; see answered-over-the-watchdog 0 $?
until_so watchdog another_pid "$old"
see watchdog-did-it watchdog "$(tail -n1 /var/lib/staled/dev/results)"

# A bad configuration is told and changes nothing.
until_so ready-for-reload says "every watch is armed"
old=$(pid)
as_dev mkdir -p /home/dev/.config/staled
as_dev sh -c 'printf "[log]\nsink = 1\n" > /home/dev/.config/staled/config.toml'
see reload-of-bad 0 "$(systemctl reload $unit; echo $?)"
until_so reload-refused says "was not reloaded"
see still-active "active $old" "$(systemctl is-active $unit) $(pid)"
as_dev sh -c 'printf "[log]\nsync = \"always\"\nlevel = \"debug\"\n" > /home/dev/.config/staled/config.toml'
systemctl reload $unit
until_so reloaded says "is reloaded"
see taken '"log_sync":"always"' "$(health log_sync)"
until_so journal-has-each-request told_the_journal STALED_METHOD=status STALED_OUTCOME=ok

# Stopped, it leaves the socket, and the next request starts it again.
systemctl stop $unit
see stopped "inactive success 0" "$(systemctl is-active $unit) $(shown Result) $(shown ExecMainStatus)"
see socket-stays "active $inode" "$(systemctl is-active staled@dev.socket) $(stat -c %i $socket)"
asked >/dev/null; see answered-after-stop 0 $?
systemctl stop staled@dev.socket $unit
see all-gone "inactive no" "$(systemctl is-active staled@dev.socket) $([ -e $socket ] && echo yes || echo no)"
[ $bad = 0 ] || journalctl -u $unit --no-pager -o cat | tail -40
exit $bad
