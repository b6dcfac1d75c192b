use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::fs::FsErrorKind;

/// A folder `in` to stay in and a folder `out` beside it with a secret, both ways of resolving.
fn each_way(test: impl Fn(&Beneath, &Path)) {
    for walks in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let (inside, outside) = (dir.path().join("in"), dir.path().join("out"));
        fs::create_dir(&inside).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "secret").unwrap();
        let mut beneath = Beneath::open(&inside).unwrap();
        if walks {
            beneath.way = Way::Walk;
        }
        test(&beneath, dir.path());
        assert_eq!(fs::read(outside.join("secret")).unwrap(), b"secret");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "walks: {walks}");
    }
}

fn text(beneath: &Beneath, place: &str) -> String {
    let mut text = String::new();
    beneath
        .open_file(place)
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    text
}

#[test]
fn files_are_made_read_grown_renamed_and_removed() {
    each_way(|beneath, _| {
        beneath
            .write_file("a/b/c", &mut &b"one"[..], false)
            .unwrap();
        assert_eq!(beneath.append("a/b/c", b" two").unwrap(), 7);
        assert_eq!(text(beneath, "a/b/c"), "one two");
        beneath.rename("a/b", "d", Taken::Refuse).unwrap();
        assert_eq!(text(beneath, "d/c"), "one two");
        let names: Vec<_> = beneath
            .list("")
            .unwrap()
            .into_iter()
            .map(|(name, found)| (name, found.is_folder))
            .collect();
        assert_eq!(names, [("a".to_owned(), true), ("d".to_owned(), true)]);
        beneath.remove_file("d/c").unwrap();
        assert_eq!(beneath.look("d/c").unwrap(), None);
        beneath.write_file("d/x/y", &mut &b""[..], false).unwrap();
        assert_eq!(beneath.remove_folder("d").unwrap(), 3);
        assert_eq!(beneath.list("").unwrap().len(), 1);
    });
}

#[test]
fn links_and_dots_that_lead_outside_are_refused_by_every_call() {
    each_way(|beneath, dir| {
        let inside = dir.join("in");
        symlink("../out", inside.join("folder")).unwrap();
        symlink(dir.join("out"), inside.join("absolute")).unwrap();
        symlink("../out/secret", inside.join("file")).unwrap();
        symlink("../out/new", inside.join("dangling")).unwrap();
        fs::write(inside.join("mine"), "mine").unwrap();

        for place in [
            "folder/secret",
            "absolute/secret",
            "file",
            "../out/secret",
            "folder/../../out/secret",
        ] {
            assert!(beneath.open_file(place).is_err(), "read {place}");
            assert!(beneath.append(place, b"x").is_err(), "append {place}");
            assert!(!matches!(beneath.look(place), Ok(Some(_))), "look {place}");
        }
        for place in ["folder/new", "absolute/new", "../out/new"] {
            assert!(beneath.write_file(place, &mut &b"x"[..], false).is_err());
            assert!(beneath.create_file(place, false).is_err());
            assert!(beneath.make_folders(place).is_err());
            assert!(beneath.rename("mine", place, Taken::Replace).is_err());
            assert!(beneath.remove_folder(place).is_err());
        }
        for place in ["folder/secret", "../out/secret"] {
            assert!(beneath.remove_file(place).is_err());
            assert!(beneath.rename(place, "got", Taken::Replace).is_err());
        }
        assert!(beneath.append("dangling", b"x").is_err());
        assert!(beneath.list("folder").is_err() && beneath.list("..").is_err());
        let names: Vec<_> = beneath.list("").unwrap();
        assert_eq!(names.len(), 1, "links that lead outside are not shown");
        let error = beneath.open_file("folder/secret").unwrap_err();
        assert_eq!(error.kind(), FsErrorKind::Permission);
    });
}

#[test]
fn a_link_in_the_place_of_a_file_is_replaced_and_not_followed() {
    each_way(|beneath, dir| {
        symlink("../out/secret", dir.join("in/file")).unwrap();
        symlink("../out", dir.join("in/folder")).unwrap();

        beneath
            .write_file("file", &mut &b"mine"[..], false)
            .unwrap();
        assert!(beneath.remove_folder("folder").is_err());
        beneath.remove_file("folder").unwrap();

        assert_eq!(text(beneath, "file"), "mine");
    });
}

#[test]
fn a_folder_with_links_is_removed_and_what_they_lead_to_stays() {
    each_way(|beneath, dir| {
        fs::create_dir(dir.join("in/full")).unwrap();
        symlink("../../out", dir.join("in/full/folder")).unwrap();
        symlink("../../out/secret", dir.join("in/full/file")).unwrap();

        assert_eq!(beneath.remove_folder("full").unwrap(), 3);
    });
}

#[cfg(target_os = "linux")]
#[test]
fn links_that_stay_inside_are_followed_where_the_kernel_can() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("real")).unwrap();
    fs::write(dir.path().join("real/file"), "here").unwrap();
    symlink("real", dir.path().join("link")).unwrap();
    let beneath = Beneath::open(dir.path()).unwrap();

    if beneath.way == Way::Kernel {
        assert_eq!(text(&beneath, "link/file"), "here");
        assert!(beneath.look("link").unwrap().unwrap().is_folder);
    }
}

#[test]
fn a_folder_swapped_for_a_link_at_any_moment_lets_nothing_out() {
    each_way(|beneath, dir| {
        let inside = dir.join("in");
        fs::create_dir(inside.join("real")).unwrap();
        fs::create_dir(inside.join("swap")).unwrap();
        symlink("../out", inside.join("bad")).unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // `swap` is in turn a folder, nothing, and a link that leads outside.
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    let _ = fs::rename(inside.join("swap"), inside.join("away"));
                    let _ = fs::rename(inside.join("bad"), inside.join("swap"));
                    let _ = fs::rename(inside.join("swap"), inside.join("bad"));
                    let _ = fs::rename(inside.join("away"), inside.join("swap"));
                }
            });
            for turn in 0..2_000 {
                let _ = beneath.write_file("swap/new", &mut &b"x"[..], false);
                let _ = beneath.append(&format!("swap/new-{}", turn % 7), b"x");
                let _ = beneath.rename("swap/new", "swap/newer", Taken::Replace);
                let _ = beneath.remove_file("swap/secret");
                if let Ok(mut file) = beneath.open_file("swap/secret") {
                    let mut found = String::new();
                    let _ = file.read_to_string(&mut found);
                    assert_ne!(found, "secret");
                }
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    });
}

#[test]
fn what_is_made_is_private_and_what_is_replaced_keeps_its_permissions() {
    each_way(|beneath, dir| {
        let mode = |place: &str| {
            let meta = fs::symlink_metadata(dir.join("in").join(place)).unwrap();
            meta.permissions().mode() & 0o777
        };
        beneath.write_file("f/file", &mut &b"x"[..], false).unwrap();
        beneath
            .write_file("f/program", &mut &b"x"[..], true)
            .unwrap();
        assert_eq!(
            (mode("f"), mode("f/file"), mode("f/program")),
            (0o700, 0o600, 0o700)
        );
        fs::set_permissions(dir.join("in/f/file"), fs::Permissions::from_mode(0o640)).unwrap();

        beneath.write_file("f/file", &mut &b"y"[..], false).unwrap();

        assert_eq!(mode("f/file"), 0o640);
        assert!(beneath.look("f/program").unwrap().unwrap().is_executable);
    });
}

#[test]
fn what_is_no_file_is_neither_opened_nor_overwritten() {
    each_way(|beneath, dir| {
        let pipe = dir.join("in/pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        if !made.is_ok_and(|status| status.success()) {
            return;
        }
        fs::create_dir(dir.join("in/folder")).unwrap();

        assert!(beneath.open_file("pipe").is_err());
        assert!(beneath.append("pipe", b"x").is_err());
        assert_eq!(beneath.look("pipe").unwrap(), None);
        assert!(beneath.open_file("folder").is_err());
        assert!(beneath.write_file("folder", &mut &b"x"[..], false).is_err());
        beneath.write_file("plain", &mut &b"x"[..], false).unwrap();
        let taken = beneath.rename("plain", "folder", Taken::Refuse);
        assert_eq!(taken.unwrap_err().kind(), FsErrorKind::AlreadyExists);
    });
}
