//! A systemd that does not read what it is told: nobody waits for it, and it is told when it reads again.

use super::serve::Serving;
use super::staled;
use crate::harness::{PATIENCE, Place, wait_until};
use rustix::process::Signal;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// The queue of datagrams, full.
fn fill(path: &Path) {
    let others = UnixDatagram::unbound().expect("a socket");
    others.set_nonblocking(true).expect("ours");
    others.connect(path).expect("it is bound");
    while others.send(b"OTHER=1\n").is_ok() {}
    assert_eq!(others.send(b"OTHER=1\n").map_err(|error| error.kind()), Err(ErrorKind::WouldBlock));
}

#[test]
fn a_systemd_that_does_not_read_holds_nobody_up_and_is_told_later() {
    let place = Place::new();
    let path = place.root.join("notify");
    let systemd = UnixDatagram::bind(&path).expect("a datagram socket");
    systemd.set_read_timeout(Some(PATIENCE)).expect("a bound");
    let told = || {
        let mut message = [0; 1024];
        loop {
            let len = systemd.recv(&mut message).expect("it is told in the end");
            let said = String::from_utf8_lossy(&message[..len]).into_owned();
            if said != "OTHER=1\n" && said != "WATCHDOG=1\n" {
                return said;
            }
        }
    };
    fill(&path);
    let variables = [("NOTIFY_SOCKET", path.as_path()), ("WATCHDOG_USEC", Path::new("300000"))];
    let mut daemon = Serving::start_under(&place, &[], &variables);
    wait_until("it is ready", || daemon.said().contains("every watch is armed"));
    staled(&place, &daemon.socket, &["status"]).ok();
    for times in 1..=3 {
        daemon.signal(Signal::HUP);
        wait_until("it is reloaded", || daemon.said().matches("configuration reloaded").count() == times);
    }
    staled(&place, &daemon.socket, &["reload"]).ok();
    assert!(told().contains("STATUS=every watch is armed"));
    assert!(told().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(told(), "READY=1\nSTATUS=the configuration is reloaded\n", "of four reloads the last is told");
    fill(&path);
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ends(), 0);
    wait_until("everything is read", || {
        let mut message = [0; 1024];
        systemd.set_nonblocking(true).expect("ours");
        systemd.recv(&mut message).is_err()
    });
}
