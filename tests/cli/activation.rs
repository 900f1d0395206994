//! A socket that was bound by somebody else, as systemd does it: served, left where it is, and judged.

use super::serve::{Serving, refused_by, state};
use super::{program, staled};
use crate::harness::{PATIENCE, Place, wait_until};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use rustix::process::Signal;
use staled::store::journal::Journal;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// `serve` with this as descriptor 3, which is what systemd promises.
fn handed(place: &Place, socket: OwnedFd, variables: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.env_clear().envs(program(place).get_envs().filter_map(|(key, value)| Some((key, value?))));
    shell.current_dir(&place.root).stdin(Stdio::from(socket)).arg("-c");
    shell.arg(format!("export {variables}; exec \"$0\" serve --state \"$1\" 3<&0 </dev/null"));
    shell.arg(env!("CARGO_BIN_EXE_staled")).arg(state(place));
    shell
}

/// A folder like the one that systemd makes for the socket of a template: everybody may look into it.
fn folder(place: &Place, mode: u32) -> PathBuf {
    let folder = place.home.with_file_name("sockets");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::set_permissions(&folder, Permissions::from_mode(mode)).expect("ours");
    folder
}

/// The usual file of a user, where `serve` finds it by itself.
fn config(place: &Place, confine: &str) {
    let folder = place.home.join(".config/staled");
    std::fs::create_dir_all(&folder).expect("a folder");
    let text = format!("[server]\nconfine = \"{confine}\"\n");
    std::fs::write(folder.join("config.toml"), text).expect("a file");
}

fn copy(listener: &UnixListener) -> OwnedFd {
    listener.try_clone().expect("a descriptor").into()
}

const OURS: &str = "LISTEN_PID=$$ LISTEN_FDS=1";

#[test]
fn a_socket_that_was_handed_over_is_served_and_outlives_every_daemon() {
    let place = Place::new();
    let path = folder(&place, 0o755).join("s.sock");
    let listener = UnixListener::bind(&path).expect("bound");
    let inode = || std::fs::metadata(&path).expect("the socket stays").ino();
    let first = inode();
    for (end, confine) in [(Signal::TERM, "auto"), (Signal::KILL, "auto"), (Signal::TERM, "off")] {
        // Confined it could not remove the socket, so it is tried unconfined too.
        config(&place, confine);
        // It waits in the backlog until there is a daemon, cold or again.
        let mut early = UnixStream::connect(&path).expect("somebody holds the socket");
        early
            .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\",\"params\":{}}\n")
            .expect("sent");
        let mut daemon = Serving::of(&place, handed(&place, copy(&listener), OURS), path.clone());
        let mut answer = String::new();
        BufReader::new(early).read_line(&mut answer).expect("answered");
        assert!(answer.contains("\"result\""), "{answer}");
        let status = staled(&place, &path, &["status", "--json"]).ok().json();
        assert_eq!(status["confinement"] == "off", confine == "off", "{status}");
        assert!(!state(&place).join("run/staled.sock").exists(), "no other is bound");
        daemon.signal(end);
        if end == Signal::TERM {
            assert_eq!(daemon.ends(), 0);
            assert!(!state(&place).join("run/staled.pid").exists());
        } else {
            drop(daemon);
        }
        assert_eq!(inode(), first);
    }
}

#[test]
fn variables_that_were_meant_for_another_process_are_ignored() {
    let place = Place::new();
    let path = folder(&place, 0o755).join("s.sock");
    let listener = UnixListener::bind(&path).expect("bound");
    for variables in ["LISTEN_PID=1 LISTEN_FDS=1", "LISTEN_FDS=1", "LISTEN_PID= LISTEN_FDS=1"] {
        let own = state(&place).join("run/staled.sock");
        let mut daemon = Serving::of(&place, handed(&place, copy(&listener), variables), own.clone());
        staled(&place, &own, &["status"]).ok();
        daemon.signal(Signal::TERM);
        assert_eq!(daemon.ends(), 0);
        wait_until("its own socket is removed", || !own.exists());
    }
}

#[test]
fn what_cannot_be_trusted_or_served_is_refused() {
    let place = Place::new();
    let open = UnixListener::bind(folder(&place, 0o777).join("open.sock")).expect("bound");
    refused_by(handed(&place, copy(&open), OURS)).fails(2, "nobody else may write to it");
    let folder = folder(&place, 0o755);
    let good = UnixListener::bind(folder.join("good.sock")).expect("bound");
    for (count, says) in [("2", "2 descriptors"), ("0", "0 descriptors"), ("", "no descriptors")] {
        let variables = format!("LISTEN_PID=$$ LISTEN_FDS={count}");
        refused_by(handed(&place, copy(&good), &variables)).fails(2, says);
    }
    let datagrams = UnixDatagram::bind(folder.join("d.sock")).expect("bound");
    refused_by(handed(&place, datagrams.into(), OURS)).fails(2, "no listening Unix stream socket");
    refused_by(handed(&place, silent(&folder.join("silent.sock")), OURS))
        .fails(2, "no listening Unix stream socket");
    let file = std::fs::File::open("/dev/null").expect("it is there");
    refused_by(handed(&place, file.into(), OURS)).fails(2, "no listening Unix stream socket");
    assert!(!state(&place).exists(), "nothing was begun");
}

/// Bound, but nobody listens.
fn silent(path: &Path) -> OwnedFd {
    let socket = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
    rustix::net::bind(&socket, &SocketAddrUnix::new(path).expect("short")).expect("bound");
    socket
}

/// Nobody would come after it, and whoever waits at the socket would have systemd start it for ever.
#[test]
fn whoever_waits_is_told_when_it_can_never_be_served() {
    let place = Place::new();
    let path = folder(&place, 0o755).join("s.sock");
    let listener = UnixListener::bind(&path).expect("bound");
    let ends_telling = |says: &str| {
        let waiting =
            [UnixStream::connect(&path), UnixStream::connect(&path)].map(|stream| stream.expect("held"));
        for mut early in &waiting {
            early
                .write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"hello\",\"params\":{}}\n")
                .expect("sent");
        }
        refused_by(handed(&place, copy(&listener), OURS)).fails(78, says);
        for early in waiting {
            // In the backlog it would wait as long as the socket is there.
            early.set_read_timeout(Some(PATIENCE)).expect("a bound");
            let mut answer = String::new();
            BufReader::new(early).read_line(&mut answer).expect("answered");
            assert!(answer.contains("store_failed") && answer.contains(says), "{answer}");
        }
    };
    let journal = state(&place).join("journal");
    let (mut records, _) = Journal::open(&journal, [0; 16], &mut |_| Ok(())).expect("a journal");
    records.append(b"{\"pinned\":1}").expect("a record");
    std::fs::set_permissions(state(&place), Permissions::from_mode(0o700)).expect("ours");
    ends_telling("unknown variant");
    config(&place, "perhaps");
    ends_telling("perhaps");
}
