//! The traps of systemd that cost wrong answers or no answers, each looked for in the units as they are written.

use super::{folder, is_there, text};
use crate::harness::Place;
use crate::harness::skipped;
use std::process::Command;

const SERVICES: [&str; 2] = ["staled.service", "staled@.service"];
const SOCKETS: [&str; 2] = ["staled.socket", "staled@.socket"];
const DROP_IN: &str = "staled.service.d/10-namespaces.conf";

/// What this key is set to, every time it is.
fn values(unit: &str, key: &str) -> Vec<String> {
    let set = |line: &str| Some(line.strip_prefix(key)?.strip_prefix('=')?.to_owned());
    text(unit).lines().filter_map(set).collect()
}

fn only(unit: &str, key: &str) -> String {
    let values = values(unit, key);
    assert_eq!(values.len(), 1, "{key} in {unit}");
    values.into_iter().next().expect("one")
}

#[test]
fn stopping_the_service_does_not_remove_the_folder_of_the_socket() {
    assert_eq!(values("staled.service", "RuntimeDirectory"), [""; 0]);
    assert_eq!(only("staled.socket", "ListenStream"), "%t/staled/staled.sock");
    let (removed, socket) =
        (only("staled@.service", "RuntimeDirectory"), only("staled@.socket", "ListenStream"));
    assert_eq!(socket, "/run/staled/%i/staled.sock");
    assert!(!socket.starts_with(&format!("/run/{removed}/")), "{removed} holds {socket}");
}

#[test]
fn the_service_is_the_users_own_and_sees_what_the_user_sees() {
    assert_eq!(only("staled@.service", "User"), "%i");
    assert_eq!(only("staled@.socket", "SocketUser"), "%i");
    for unit in [SERVICES[0], SERVICES[1], DROP_IN] {
        for key in [
            "DynamicUser",
            "PrivateTmp",
            "ProcSubset",
            "RemoveIPC",
            "RootDirectory",
            "TemporaryFileSystem",
            "InaccessiblePaths",
            "RuntimeDirectoryPreserve",
        ] {
            assert_eq!(values(unit, key), [""; 0], "{key} in {unit}");
        }
        assert!(values(unit, "ProtectHome").iter().all(|value| value == "read-only"), "{unit}");
    }
    // In a user unit of systemd before 254 it would be below ~/.config.
    assert_eq!(values("staled.service", "StateDirectory"), [""; 0]);
}

#[test]
fn the_service_is_watched_and_always_made_anew() {
    for unit in SERVICES {
        for (key, value) in [
            ("Type", "notify"),
            ("NotifyAccess", "main"),
            ("ExecReload", "/bin/kill -HUP $MAINPID"),
            ("Restart", "always"),
            ("RestartSec", "500ms"),
            ("RestartPreventExitStatus", "78"),
            ("StartLimitIntervalSec", "0"),
            ("WatchdogSec", "30s"),
            ("TimeoutStartSec", "infinity"),
            ("LimitCORE", "0"),
            ("UMask", "0077"),
            ("NoNewPrivileges", "yes"),
        ] {
            assert_eq!(only(unit, key), value, "{key} in {unit}");
        }
        let socket = unit.replace("@.service", "@%i.socket").replace(".service", ".socket");
        for key in ["Requires", "After", "Also"] {
            assert_eq!(only(unit, key), socket, "{key} in {unit}");
        }
    }
}

#[test]
fn the_calls_that_confine_the_daemon_are_allowed() {
    for unit in SERVICES {
        let filters = values(unit, "SystemCallFilter");
        for call in ["landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self"] {
            assert!(filters[0].split(' ').any(|word| word == call), "{call} in {unit}");
        }
        // A group that this systemd does not know would be ignored with a word in the journal.
        assert!(filters.iter().all(|filter| !filter.contains("@sandbox")), "{unit}");
    }
}

/// What every service gives up, with namespaces or without.
const GIVEN_UP: [(&str, &str); 9] = [
    ("NoNewPrivileges", "yes"),
    ("LockPersonality", "yes"),
    ("MemoryDenyWriteExecute", "yes"),
    ("RestrictAddressFamilies", "AF_UNIX"),
    ("RestrictNamespaces", "yes"),
    ("RestrictRealtime", "yes"),
    ("RestrictSUIDSGID", "yes"),
    ("SystemCallArchitectures", "native"),
    ("SystemCallErrorNumber", "EPERM"),
];

/// What the template and the drop-in give up beyond that.
const BEHIND_NAMESPACES: [(&str, &str); 14] = [
    ("PrivateUsers", "yes"),
    ("ProtectSystem", "strict"),
    ("ProtectHome", "read-only"),
    ("CapabilityBoundingSet", ""),
    ("PrivateDevices", "yes"),
    ("PrivateNetwork", "yes"),
    ("ProtectClock", "yes"),
    ("ProtectControlGroups", "yes"),
    ("ProtectHostname", "yes"),
    ("ProtectKernelLogs", "yes"),
    ("ProtectKernelModules", "yes"),
    ("ProtectKernelTunables", "yes"),
    ("ProtectProc", "invisible"),
    ("PrivateMounts", "yes"),
];

/// The exposure that systemd computes leaves room for any one of these to go unnoticed.
#[test]
fn whatever_a_service_can_do_without_is_taken_from_it() {
    for unit in SERVICES {
        for (key, value) in GIVEN_UP {
            assert_eq!(only(unit, key), value, "{key} in {unit}");
        }
        let filters = values(unit, "SystemCallFilter");
        assert!(filters.len() == 2 && filters[1] == "~@privileged @resources", "{filters:?} in {unit}");
    }
    for (key, value) in BEHIND_NAMESPACES {
        assert_eq!(only(SERVICES[1], key), value, "{key} in the template");
        // A service with a root of its own, which these make, has a mount namespace of its own too.
        if key != "PrivateMounts" {
            assert_eq!(only(DROP_IN, key), value, "{key} in the drop-in");
        }
    }
    let template = [("AmbientCapabilities", ""), ("DevicePolicy", "closed"), ("KeyringMode", "private")];
    for (key, value) in template.into_iter().chain([("IPAddressDeny", "any")]) {
        assert_eq!(only(SERVICES[1], key), value, "{key} in the template");
    }
}

#[test]
fn a_stopping_daemon_has_the_time_that_it_takes_itself_and_room_for_its_clients() {
    let config = staled::config::Config::default();
    for unit in SERVICES {
        let stop = only(unit, "TimeoutStopSec");
        let stop: u64 = stop.strip_suffix('s').and_then(|seconds| seconds.parse().ok()).expect("seconds");
        // The drain, then a second each for the engine, the last anchor and what hangs on a disk.
        assert!(stop * 1_000 >= config.server.drain_timeout_ms + 3_000, "{stop} s in {unit}");
        let files: usize = only(unit, "LimitNOFILE").parse().expect("a number");
        assert!(files > 4 * config.server.connections_max, "{files} in {unit}");
    }
}

#[test]
fn the_units_are_started_with_their_manager_and_have_all_their_parts() {
    for (unit, part, target) in [
        (SERVICES[0], "[Service]", "default.target"),
        (SERVICES[1], "[Service]", "multi-user.target"),
        (SOCKETS[0], "[Socket]", "sockets.target"),
        (SOCKETS[1], "[Socket]", "sockets.target"),
    ] {
        assert_eq!(only(unit, "WantedBy"), target, "{unit}");
        assert!(!only(unit, "Description").is_empty(), "{unit}");
        let text = text(unit);
        let parts: Vec<&str> = text.lines().filter(|line| line.starts_with('[')).collect();
        assert_eq!(parts, ["[Unit]", part, "[Install]"], "{unit}");
    }
    // Below the user's own name, and nobody else's to read.
    assert_eq!(only(SERVICES[1], "StateDirectory"), "staled/%i");
    assert_eq!(only(SERVICES[1], "StateDirectoryMode"), "0700");
    assert_eq!(only(SERVICES[1], "RuntimeDirectoryMode"), "0700");
}

#[test]
fn a_user_manager_enforces_the_drop_in() {
    assert_eq!(only(DROP_IN, "PrivateUsers"), "yes");
    // Without PrivateUsers the first fails and the others are ignored silently.
    for key in [
        "CapabilityBoundingSet",
        "ProtectSystem",
        "ProtectHome",
        "PrivateNetwork",
        "PrivateDevices",
        "PrivateMounts",
        "MemoryMax",
    ] {
        assert_eq!(values("staled.service", key), [""; 0], "{key}");
    }
    // Below it, whatever the daemon writes.
    assert_eq!(only(DROP_IN, "ReadWritePaths"), "%h/.local/state/staled %t/staled");
}

#[test]
fn a_socket_is_its_users_alone_and_leaves_nothing_behind() {
    for unit in SOCKETS {
        assert_eq!(only(unit, "SocketMode"), "0600");
        assert_eq!(only(unit, "RemoveOnStop"), "yes");
    }
    assert_eq!(only(SOCKETS[0], "DirectoryMode"), "0700");
    assert_eq!(only(SOCKETS[1], "DirectoryMode"), "0755");
}

#[test]
fn systemd_finds_little_to_exploit() {
    if !is_there("systemd-analyze") {
        return skipped("there is no systemd-analyze");
    }
    let place = Place::new();
    // The threshold is ten times the score. The user unit is judged with its drop-in, which lies beside it.
    for (unit, threshold, scope) in [("staled@.service", 10, "--system"), ("staled.service", 15, "--user")] {
        let output = Command::new("systemd-analyze")
            .args(["security", scope, "--offline=true", &format!("--threshold={threshold}")])
            .arg(folder().join(unit))
            .env("XDG_RUNTIME_DIR", &place.root)
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("Overall exposure level"), "{said} {output:?}");
        assert!(output.status.success(), "{unit}: {said}");
    }
}
