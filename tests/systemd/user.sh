# The user unit under a real user manager; common.sh stands before it.
run=/run/user/4242
socket=$run/staled/staled.sock

# No STALED_SOCKET: the client finds it where the manager has put it.
as_dev() { clean_as 4242 HOME=/home/dev XDG_RUNTIME_DIR=$run "$@"; }
user() { as_dev systemctl --user "$@"; }
shown() { user show -P "$1" staled.service; }

# There is no logind here to make the runtime folder; it is there already. The manager is the real one.
# And the first sandboxed service of the system, of which there is none here, makes the place for everybody's namespaces.
mkdir -p /run/systemd/system /run/systemd/unit-root
printf '[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/bin/true\n' > /run/systemd/system/user-runtime-dir@.service
systemctl daemon-reload
systemctl start user@4242.service
until_so manager user list-units || exit 1
see installed 0 "$(as_dev staled install systemd --namespaces >/dev/null 2>&1; echo $?)"
user daemon-reload
see enabled 0 "$(user enable --now staled.socket >/dev/null 2>&1; echo $?)"
see cold "inactive active" "$(user is-active staled.service) $(user is-active staled.socket)"
see socket "600 dev 700 dev" "$(stat -c '%a %U' $socket) $(stat -c '%a %U' $run/staled)"

# The first request starts it. Its own namespaces are on, and it sees what the user sees all the same.
see answered-from-cold '"confinement":"enforced"' "$(health confinement)"
until_so ready says "every watch is armed"
see active "active running success" "$(shown ActiveState) $(shown SubState) $(shown Result)"
see runs-as dev "$(stat -c %U /proc/$(pid))"
see state "700 dev" "$(stat -c '%a %U' /home/dev/.local/state/staled)"
see other-namespaces different "$([ "$(readlink /proc/$(pid)/ns/user)" = "$(readlink /proc/1/ns/user)" ] && echo same || echo different)"
as_dev mkdir -p /home/dev/project; written /home/dev/project one
registered s /home/dev/project
before=$(decided s)
written /home/dev/project two
see sees-what-changes "0 11" "$before $(decided s)"
forks /home/dev/project

# The end of one is the beginning of another, and nothing is lost.
old=$(pid); kill -KILL "$old"
see answered-after-kill 11 "$(decided s)"
until_so made-anew another_pid "$old"
written /home/dev/project one
see kept 0 "$(decided s)"

# Another user does not get in.
see nobody-else-gets-in 2 "$(asked_by_another)"

until_so ready-for-reload says "every watch is armed"
# What the machine is given is not the unit's doing, all the rest is: two units and one root are two lines and one.
as_dev staled doctor | grep -vE '^..  (kernel|max_|open files|space)' > /tmp/doctor
see doctor-is-content "" "$(grep -v '^ok  ' /tmp/doctor)"
see doctor-has-looked 16 "$(grep -c '^ok  ' /tmp/doctor)"
as_dev mkdir -p /home/dev/.config/staled
as_dev sh -c 'printf "[log]\nsync = \"always\"\n" > /home/dev/.config/staled/config.toml'
user reload staled.service
until_so reloaded says "is reloaded"
see taken '"log_sync":"always"' "$(health log_sync)"

user stop staled.service
see stopped "inactive success 0" "$(user is-active staled.service) $(shown Result) $(shown ExecMainStatus)"
asked >/dev/null; see answered-after-stop 0 $?
user stop staled.socket staled.service
see all-gone "inactive no" "$(user is-active staled.socket) $([ -e $socket ] && echo yes || echo no)"
[ $bad = 0 ] || journalctl _UID=4242 --no-pager -o cat | tail -60
exit $bad
