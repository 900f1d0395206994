//! Who we are, by name. Both ends of the socket run as the same user, so both find the same name.

/// The login name behind our own uid; the uid where nobody gave it a name in `/etc/passwd`.
#[must_use]
pub fn login_name() -> String {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    named(&passwd, &uid).unwrap_or(uid)
}

fn named(passwd: &str, uid: &str) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn the_name_is_the_one_with_our_uid() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nodd line\nalice:x:1000:100:1001:/home/alice:/bin/sh\n";
        assert_eq!(named(passwd, "1000").as_deref(), Some("alice"));
        assert_eq!(["100", "1001", "x"].map(|uid| named(passwd, uid)), [None, None, None]);
    }
}
