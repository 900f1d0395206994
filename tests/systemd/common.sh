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
is_independent() { as_dev staled fork status one --json | grep -q '"independent":true'; }
forks() { # FOLDER: a repository is forked by a daemon that is shut in, worked in, judged and discarded.
  as_dev sh -c "cd $1 && git init -q && git add -A && git -c user.name=a -c user.email=a@b.c commit -qm one"
  registered forks $1
  see fork-is-made '"stage":"ready"' "$(as_dev staled fork create forks one --json 2>&1 | grep -o '"stage":"[a-z]*"')"
  until_so fork-is-independent is_independent
  see fork-is-shut-in "work 1" "$(as_dev staled fork exec one -- sh -c "echo work | tee file; cat $1/file >/dev/null 2>&1 || echo 1" 2>/dev/null | tr '\n' ' ' | sed 's/ $//')"
  see fork-is-judged '"may_merge":true' "$(as_dev staled fork merge one --json 2>&1 | grep -o '"may_merge":[a-z]*')"
  see fork-is-discarded '"discarded":true' "$(as_dev staled fork discard one --force --json 2>&1 | grep -o '"discarded":[a-z]*')"
}
decided() { as_dev staled decide "$1" >/dev/null; echo $?; }
