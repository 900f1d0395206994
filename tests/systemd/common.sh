# What both scenarios are told in. Each says one line for each thing that was seen: "ok NAME" or "not ok NAME: why", and
# ends with 0 only when every one was ok. They say themselves who `as_dev` is and whose properties are `shown`.
set -u
bad=0
PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin

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
clean_as() { # UID VARIABLES... COMMAND...
  local uid=$1; shift
  setpriv --reuid=$uid --regid=$uid --clear-groups env -i PATH=$PATH "$@"
}
asked() { as_dev staled status --json; }
health() { asked | grep -o "\"$1\":\"[^\"]*\""; }
asked_by_another() { clean_as 4243 STALED_SOCKET=$socket staled status >/dev/null 2>&1; echo $?; }
pid() { shown MainPID; }
another_pid() { [ "$(pid)" != "$1" ] && [ "$(pid)" != 0 ]; }
says() { case $(shown StatusText) in *"$1"*) ;; *) return 1;; esac; }
written() { as_dev sh -c "echo $2 > $1/file"; } # FOLDER TEXT
registered() { # SESSION FOLDER
  local digest result
  digest=sha256:$(sha256sum < $2/file | cut -d' ' -f1)
  result="{\"id\":\"r\",\"source\":{\"kind\":\"file\",\"path\":\"file\"},\"digest\":\"$digest\"}"
  echo "{\"session\":\"$1\",\"root\":\"$2\",\"results\":[$result]}" > /tmp/context.json
  as_dev staled register /tmp/context.json >/dev/null
}
decided() { as_dev staled decide "$1" >/dev/null; echo $?; }
