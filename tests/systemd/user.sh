# The user unit under a real user manager. What it says and how it ends is as in inside.sh, which see.
set -u
bad=0
PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
run=/run/user/4242
socket=$run/staled/staled.sock

see() { # NAME WANTED FOUND
  if [ "$2" = "$3" ]; then echo "ok $1"; else bad=1; echo "not ok $1: wanted '$2', found '$3'"; fi
}
until_so() { # NAME COMMAND...
  local name=$1 tries=0; shift
  until "$@" >/dev/null 2>&1; do
    tries=$((tries + 1)); [ $tries -lt 300 ] || { bad=1; echo "not ok $name: in vain: $*"; return 1; }
    sleep 0.1
  done
  echo "ok $name"
}
# No STALED_SOCKET: the client finds it where the manager has put it.
as_dev() { setpriv --reuid=4242 --regid=4242 --clear-groups env -i HOME=/home/dev PATH=$PATH XDG_RUNTIME_DIR=$run "$@"; }
user() { as_dev systemctl --user "$@"; }
shown() { user show -P "$1" staled.service; }
says() { case $(shown StatusText) in *"$1"*) ;; *) return 1;; esac; }
asked() { as_dev staled status --json; }
health() { asked | grep -o "\"$1\":\"[^\"]*\""; }
decided() { as_dev staled decide s >/dev/null; echo $?; }
another_pid() { [ "$(shown MainPID)" != "$1" ] && [ "$(shown MainPID)" != 0 ]; }

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
see runs-as dev "$(stat -c %U /proc/$(shown MainPID))"
see state "700 dev" "$(stat -c '%a %U' /home/dev/.local/state/staled)"
see other-namespaces different "$([ "$(readlink /proc/$(shown MainPID)/ns/user)" = "$(readlink /proc/1/ns/user)" ] && echo same || echo different)"
as_dev mkdir -p /home/dev/project; as_dev sh -c "echo one > /home/dev/project/file"
digest=sha256:$(sha256sum < /home/dev/project/file | cut -d' ' -f1)
result="{\"id\":\"r\",\"source\":{\"kind\":\"file\",\"path\":\"file\"},\"digest\":\"$digest\"}"
echo "{\"session\":\"s\",\"root\":\"/home/dev/project\",\"results\":[$result]}" > /tmp/context.json
as_dev staled register /tmp/context.json >/dev/null
before=$(decided)
as_dev sh -c "echo two > /home/dev/project/file"
see sees-what-changes "0 11" "$before $(decided)"

# The end of one is the beginning of another, and nothing is lost.
old=$(shown MainPID); kill -KILL "$old"
see answered-after-kill 11 "$(decided)"
until_so made-anew another_pid "$old"
as_dev sh -c "echo one > /home/dev/project/file"
see kept 0 "$(decided)"

# Another user does not get in.
see nobody-else-gets-in 2 "$(setpriv --reuid=4243 --regid=4243 --clear-groups env -i PATH=$PATH STALED_SOCKET=$socket staled status >/dev/null 2>&1; echo $?)"

until_so ready-for-reload says "every watch is armed"
# What the machine is given is not the unit's doing, all the rest is: two units and one root are two lines and one.
as_dev staled doctor | grep -vE '^..  (kernel|max_|open files|space)' > /tmp/doctor
see doctor-is-content "" "$(grep -v '^ok  ' /tmp/doctor)"
see doctor-has-looked 13 "$(grep -c '^ok  ' /tmp/doctor)"
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
