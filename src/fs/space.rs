//! How much room a place has, and what kind of filesystem it is on.
//!
//! SQLite's WAL needs shared memory between processes and honest locks: neither holds over a network or between a
//! virtual machine and its host, and a filesystem in memory is empty after the next boot.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfs, StatVfsMountFlags};

use super::FsError;

const MOUNTINFO: &str = "/proc/self/mountinfo";

const NETWORK: &[&str] = &[
    "afs",
    "beegfs",
    "ceph",
    "cifs",
    "davfs",
    "fuse.beegfs",
    "fuse.ceph",
    "fuse.ceph-fuse",
    "fuse.curlftpfs",
    "fuse.davfs2",
    "fuse.gcsfuse",
    "fuse.glusterfs",
    "fuse.goofys",
    "fuse.juicefs",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.seaweedfs",
    "fuse.sshfs",
    "gfs2",
    "glusterfs",
    "gpfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs3",
    "nfs4",
    "ocfs2",
    "orangefs",
    "smb2",
    "smb3",
    "smbfs",
];
const CROSS_VM: &[&str] = &[
    "9p",
    "drvfs",
    "fakeowner",
    "fuse.fakeowner",
    "fuse.grpcfuse",
    "fuse.osxfs",
    "fuse.prl_fsd",
    "fuse.vmhgfs-fuse",
    "osxfs",
    "prl_fs",
    "vboxsf",
    "virtiofs",
    "vmhgfs",
];
const VOLATILE: &[&str] = &["devtmpfs", "ramfs", "tmpfs"];

/// What a filesystem means for databases; the name is the operating system's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilesystemKind {
    /// A disk of this machine, or anything not known to be unfit.
    Local,
    /// Another machine's disk.
    Network(String),
    /// A folder shared between a virtual machine or container and its host.
    CrossVm(String),
    /// Memory: gone after a reboot.
    Volatile(String),
}

impl FilesystemKind {
    fn from_name(name: &str) -> Self {
        match name {
            _ if NETWORK.contains(&name) => Self::Network(name.to_owned()),
            _ if CROSS_VM.contains(&name) => Self::CrossVm(name.to_owned()),
            _ if VOLATILE.contains(&name) => Self::Volatile(name.to_owned()),
            _ => Self::Local,
        }
    }
}

/// Gives the bytes a process without privileges may still write at `path`, or where `path` would be made.
///
/// # Errors
///
/// [`FsError`] when the filesystem cannot be asked.
pub fn free_bytes(path: &Path) -> Result<u64, FsError> {
    if let Some(bytes) = planted_free_bytes() {
        return Ok(bytes);
    }
    let stat = statvfs(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// With debug assertions `ZEROCLAW_FREE_BYTES` says how much room there is, so that tests need no full disk.
fn planted_free_bytes() -> Option<u64> {
    #[cfg(any(debug_assertions, feature = "fault-points"))]
    if let Some(bytes) = std::env::var_os("ZEROCLAW_FREE_BYTES") {
        return bytes.to_str()?.parse().ok();
    }
    None
}

/// Tells whether the filesystem at `path`, or where `path` would be made, is mounted read-only.
///
/// # Errors
///
/// [`FsError`] when the filesystem cannot be asked.
pub fn is_read_only(path: &Path) -> Result<bool, FsError> {
    Ok(statvfs(path)?.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// Tells whether this process may write what is at `path`; `false` where nothing is.
#[must_use]
pub fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Tells the kind of filesystem at `path`, or where `path` would be made.
///
/// Known from Linux's mount table. On systems without one everything counts as local.
///
/// # Errors
///
/// [`FsError`] when `path` cannot be followed, or the mount table cannot be read.
pub fn filesystem(path: &Path) -> Result<FilesystemKind, FsError> {
    let existing = nearest_existing(path)?;
    let table = mount_table();
    match std::fs::read(&table) {
        Ok(mounts) => Ok(filesystem_from_mountinfo(&mounts, &existing)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(FilesystemKind::Local),
        Err(error) => Err(FsError::at("read", &table)(error)),
    }
}

/// The mount table; with debug assertions `ZEROCLAW_MOUNTINFO` may name another one, so that tests need no mounts.
fn mount_table() -> PathBuf {
    #[cfg(any(debug_assertions, feature = "fault-points"))]
    if let Some(table) = std::env::var_os("ZEROCLAW_MOUNTINFO") {
        return PathBuf::from(table);
    }
    PathBuf::from(MOUNTINFO)
}

/// Finds the mount that `path` (absolute, without links) is on in the text of `/proc/self/mountinfo`.
///
/// The longest mount point wins; of equal ones the later, which covers the earlier. Lines that do not parse are
/// passed over.
#[must_use]
pub fn filesystem_from_mountinfo(mounts: &[u8], path: &Path) -> FilesystemKind {
    mounts
        .split(|byte| *byte == b'\n')
        .filter_map(parse_mount)
        .filter(|(point, _)| path.starts_with(point))
        .max_by_key(|(point, _)| point.components().count())
        .map_or(FilesystemKind::Local, |(_, name)| {
            FilesystemKind::from_name(&name)
        })
}

/// Takes mount point and type from a line as proc_pid_mountinfo(5) has it.
///
/// `36 35 98:0 /subtree /mount/point rw,noatime master:1 - ext3 /dev/root rw`, with any number of optional fields
/// before the dash.
fn parse_mount(line: &[u8]) -> Option<(PathBuf, String)> {
    let mut fields = line.split(|byte| *byte == b' ');
    let point = unescape(fields.nth(4)?);
    let name = fields.skip_while(|field| *field != b"-").nth(1)?;
    Some((
        PathBuf::from(OsStr::from_bytes(&point)),
        String::from_utf8_lossy(name).into_owned(),
    ))
}

/// Undoes the kernel's escapes: blank, tab, newline and backslash come as `\ooo`.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        match (byte, octal(after)) {
            (b'\\', Some(escaped)) => {
                plain.push(escaped);
                rest = &after[3..];
            }
            _ => {
                plain.push(byte);
                rest = after;
            }
        }
    }
    plain
}

fn octal(digits: &[u8]) -> Option<u8> {
    let text = std::str::from_utf8(digits.get(..3)?).ok()?;
    u8::from_str_radix(text, 8).ok()
}

fn statvfs(path: &Path) -> Result<StatVfs, FsError> {
    let existing = nearest_existing(path)?;
    rustix::fs::statvfs(&existing)
        .map_err(|errno| FsError::at("ask the filesystem of", &existing)(errno.into()))
}

/// Follows links and leaves off what does not exist yet.
fn nearest_existing(path: &Path) -> Result<PathBuf, FsError> {
    let absolute = std::path::absolute(path).map_err(FsError::at("find", path))?;
    for ancestor in absolute.ancestors() {
        match ancestor.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            found => return found.map_err(FsError::at("find", ancestor)),
        }
    }
    Err(FsError::at("find", path)(io::ErrorKind::NotFound.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &[u8] = br"22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
23 22 0:20 / /run rw,nosuid - tmpfs tmpfs rw
24 22 0:21 / /net/a rw shared:2 master:1 - nfs server:/a rw
25 22 0:22 / /net/b rw - nfs4 server:/b rw
26 22 0:23 / /net/c rw - cifs //server/c rw
27 22 0:24 / /net/d rw - smb3 //server/d rw
28 22 0:25 / /mnt/c rw - 9p C:\134 rw
29 22 0:26 / /mnt/v rw - virtiofs share rw
30 22 0:27 / /mnt/ssh rw - fuse.sshfs me@host: rw
31 22 0:28 / /mnt/ram rw - ramfs none rw
32 22 0:29 / /mnt/my\040disk\134x rw - nfs server:/x rw
33 24 254:1 / /net/a/local rw - ext4 /dev/vdb rw
34 22 0:30 / /over rw - tmpfs none rw
35 34 254:2 / /over rw - ext4 /dev/vdc rw
a line that does not parse
";

    fn at(path: &str) -> FilesystemKind {
        filesystem_from_mountinfo(MOUNTS, Path::new(path))
    }

    #[test]
    fn known_filesystems_have_their_kind() {
        use FilesystemKind::{CrossVm, Local, Network, Volatile};

        assert_eq!(at("/home/x"), Local);
        assert_eq!(at("/run/x"), Volatile("tmpfs".into()));
        assert_eq!(at("/mnt/ram"), Volatile("ramfs".into()));
        assert_eq!(at("/net/a/x"), Network("nfs".into()));
        assert_eq!(at("/net/b"), Network("nfs4".into()));
        assert_eq!(at("/net/c/x"), Network("cifs".into()));
        assert_eq!(at("/net/d/x"), Network("smb3".into()));
        assert_eq!(at("/mnt/ssh/x"), Network("fuse.sshfs".into()));
        assert_eq!(at("/mnt/c/x"), CrossVm("9p".into()));
        assert_eq!(at("/mnt/v/x"), CrossVm("virtiofs".into()));
    }

    #[test]
    fn the_longest_mount_point_wins_and_of_equal_ones_the_later() {
        assert_eq!(at("/net/a/local/x"), FilesystemKind::Local);
        assert_eq!(at("/net/a/locality"), FilesystemKind::Network("nfs".into()));
        assert_eq!(at("/over/x"), FilesystemKind::Local);
        assert_eq!(at("/runner"), FilesystemKind::Local);
    }

    #[test]
    fn escapes_in_mount_points_are_undone() {
        assert_eq!(
            at(r"/mnt/my disk\x/y"),
            FilesystemKind::Network("nfs".into())
        );
        assert_eq!(unescape(br"a\04"), br"a\04");
        assert_eq!(unescape(br"a\777"), br"a\777");
    }

    #[test]
    fn a_table_without_mounts_says_local() {
        assert_eq!(
            filesystem_from_mountinfo(b"", Path::new("/x")),
            FilesystemKind::Local
        );
    }

    #[test]
    fn a_place_that_does_not_exist_yet_is_judged_by_where_it_would_be() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a/b/c");

        assert!(free_bytes(&path).unwrap() > 0);
        assert!(!is_read_only(&path).unwrap());
        assert_eq!(filesystem(&path).unwrap(), filesystem(temp.path()).unwrap());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_running_system_is_read() {
        assert_eq!(
            filesystem(Path::new("/proc/self")).unwrap(),
            FilesystemKind::Local
        );
        if Path::new("/dev/shm").is_dir() {
            assert_eq!(
                filesystem(Path::new("/dev/shm/x")).unwrap(),
                FilesystemKind::Volatile("tmpfs".into())
            );
        }
    }
}
