//! Other names of a tree: where the filesystem that holds it, or a part of it, is mounted a second time.

use super::super::ForkError;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

const TABLE: &str = "/proc/self/mountinfo";

/// One line of the table.
struct Mount {
    device: Vec<u8>,
    /// What of the filesystem is seen here.
    top: PathBuf,
    /// Where.
    at: PathBuf,
}

/// Adds to some trees the other paths that lead to them.
pub(super) fn add_other_names(trees: &mut Vec<PathBuf>) -> Result<(), ForkError> {
    let table = std::fs::read(TABLE).map_err(ForkError::io("read", Path::new(TABLE)))?;
    let mounts: Vec<Mount> = table.split(|byte| *byte == b'\n').filter_map(mount).collect();
    let others: Vec<PathBuf> = trees.iter().flat_map(|tree| other_names(tree, &mounts)).collect();
    trees.extend(others.into_iter().filter(|name| name.exists()));
    Ok(())
}

fn other_names(tree: &Path, mounts: &[Mount]) -> Vec<PathBuf> {
    // Of two mounts at one place the later one is seen.
    let holds = mounts.iter().filter(|mount| tree.starts_with(&mount.at)).enumerate();
    let Some((_, home)) = holds.max_by_key(|(number, mount)| (mount.at.components().count(), *number)) else {
        return Vec::new();
    };
    let Ok(below) = tree.strip_prefix(&home.at) else { return Vec::new() };
    let inside = home.top.join(below);
    let others = mounts.iter().filter(|mount| mount.device == home.device && mount.at != home.at);
    let names =
        others.filter_map(|mount| match (mount.top.strip_prefix(&inside), inside.strip_prefix(&mount.top)) {
            // A part of the tree, or all of it.
            (Ok(_), _) => Some(mount.at.clone()),
            (_, Ok(below)) => Some(mount.at.join(below)),
            _ => None,
        });
    names.filter(|name| !name.starts_with(tree)).collect()
}

/// `36 35 98:0 /top /at rw,noatime shared:1 - ext4 /dev/root rw`
fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ').skip(2);
    let device = fields.next()?.to_owned();
    Some(Mount { device, top: unescaped(fields.next()?), at: unescaped(fields.next()?) })
}

/// Blanks and the like are written as `\040`.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let code = rest.get(1..4).filter(|_| *first == b'\\');
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[4..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::{mount, other_names};
    use std::path::{Path, PathBuf};

    #[test]
    fn a_tree_is_known_by_every_place_where_it_is_mounted() {
        let table = [
            "1 0 8:1 / / rw - ext4 /dev/sda rw",
            "2 1 8:2 /@home /home rw - btrfs /dev/sdb rw",
            "3 1 8:2 / /all rw - btrfs /dev/sdb rw",
            "4 1 8:1 /etc /srv\\040x rw - ext4 /dev/sda rw",
            "5 1 8:1 /etc/a /srv rw - ext4 /dev/sda rw",
        ];
        let mounts: Vec<_> = table.iter().filter_map(|line| mount(line.as_bytes())).collect();
        let names = |tree: &str| other_names(Path::new(tree), &mounts);
        assert_eq!(names("/home/me"), [Path::new("/all/@home/me")]);
        assert_eq!(names("/etc"), [Path::new("/srv x"), Path::new("/srv")]);
        assert_eq!(names("/etc/a/b"), [Path::new("/srv x/a/b"), Path::new("/srv/b")]);
        assert_eq!(names("/usr"), Vec::<PathBuf>::new());
    }
}
