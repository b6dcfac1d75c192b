//! Media by rules, images that keep their blobs, and skills that come in whole or not at all.

use zeroclaw::model::{MEDIA_ROOT, MediaRules, OutgoingImage, PageLimit};
use zeroclaw::service::{
    Clock, HolderKind, Media, NewSkillUpload, Service, ServiceError, SkillUploads,
};

use super::{NOW, folder, service};
use crate::support::recipe::sha256_hex;
use crate::support::sandbox::Sandbox;
use crate::support::sqlite::{self, block_on};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

fn image(id: &str, blob: &str) -> OutgoingImage {
    OutgoingImage {
        attachment_id: id.to_owned(),
        session_key: "matrix:home".to_owned(),
        agent_id: Some("atlas".to_owned()),
        message_id: None,
        created_at_ms: NOW,
        updated_at_ms: None,
        retention_class: None,
        alt: "a heron".to_owned(),
        original_media_root: MEDIA_ROOT.to_owned(),
        original_media_id: blob.to_owned(),
        original_media_subdir: "outbound".to_owned(),
        original_content_type: "image/png".to_owned(),
        original_width: Some(2),
        original_height: Some(2),
        original_size_bytes: Some(4),
        original_filename: None,
        record_json: "{}".to_owned(),
        cleanup_pending: false,
    }
}

async fn names(media: &Media) -> Vec<String> {
    let page = media.list(None, None, PageLimit::default()).await.unwrap();
    page.items.into_iter().map(|info| info.id).collect()
}

async fn put(media: &Media, id: &str, bytes: usize) {
    let done = media.put("outbound", id, Some("image/png"), vec![7; bytes]);
    done.await.unwrap();
}

#[tokio::test]
async fn media_come_back_as_they_were_and_damage_is_seen() {
    let dir = folder();
    let service = service(dir.path(), Clock::fixed(NOW)).await;
    let media = service.media();
    put(&media, "heron", 3_000).await;

    let found = media.get("outbound", "heron").await.unwrap().unwrap();
    assert_eq!(found.bytes, [7; 3_000]);
    assert_eq!(found.info.sha256, sha256_hex(&[7; 3_000]));
    assert!(media.get("inbound", "heron").await.unwrap().is_none());
    service.close().await;
    sqlite::change(
        &dir.path().join("state/state.sqlite"),
        "UPDATE media_blobs SET blob = zeroblob(3000)",
    );

    let service = super::service(dir.path(), Clock::fixed(NOW)).await;
    let damaged = service.media().get("outbound", "heron").await;
    assert!(matches!(damaged, Err(ServiceError::DamagedArtifact { .. })));
    service.close().await;
}

#[tokio::test]
async fn rules_take_the_oldest_and_never_what_an_image_needs() {
    let dir = folder();
    let clock = Clock::fixed(NOW);
    let service = service(dir.path(), clock.clone()).await;
    let media = service.media();
    for id in ["needed", "old", "young", "new"] {
        put(&media, id, 100).await;
        clock.advance(DAY_MS);
    }
    media.record_image(image("i1", "needed")).await.unwrap();
    let by_age = MediaRules {
        max_age_days: 2,
        max_bytes: 0,
    };
    let by_bytes = MediaRules {
        max_age_days: 0,
        max_bytes: 250,
    };

    let counted = media.prune(by_age, true).await.unwrap();
    assert_eq!((counted.blobs, counted.bytes), (1, 100));
    assert_eq!(names(&media).await.len(), 4);
    media.prune(by_age, false).await.unwrap();
    assert_eq!(names(&media).await, ["new", "young", "needed"]);
    media.prune(by_bytes, false).await.unwrap();
    assert_eq!(names(&media).await, ["new", "needed"]);
    let refused = media.delete("outbound", "needed").await;
    assert!(matches!(refused, Err(ServiceError::Conflict { .. })));
    assert_eq!(
        media
            .prune(MediaRules::default(), false)
            .await
            .unwrap()
            .blobs,
        0
    );
    service.close().await;
}

#[tokio::test]
async fn a_released_image_goes_with_its_blob_once_no_other_needs_that() {
    let dir = folder();
    let service = service(dir.path(), Clock::fixed(NOW)).await;
    let media = service.media();
    put(&media, "shared", 10).await;
    for id in ["i1", "i2"] {
        media.record_image(image(id, "shared")).await.unwrap();
    }
    let missing = media.record_image(image("i3", "none")).await;
    assert!(matches!(missing, Err(ServiceError::NotFound { .. })));

    assert!(media.release_image("i1").await.unwrap());
    let first = media.sweep().await.unwrap();
    assert_eq!((first.records, first.blobs), (1, 0));
    assert!(media.release_image("i2").await.unwrap());
    let second = media.sweep().await.unwrap();

    assert_eq!((second.records, second.blobs), (1, 1));
    assert!(names(&media).await.is_empty());
    assert!(!media.release_image("i1").await.unwrap());
    service.close().await;
}

/// A skill of so many bytes, each its place.
fn skill(bytes: usize) -> Vec<u8> {
    (0..bytes)
        .map(|at| u8::try_from(at % 251).unwrap())
        .collect()
}

fn announced(bytes: &[u8]) -> NewSkillUpload {
    NewSkillUpload {
        kind: "skill".to_owned(),
        slug: "tide-tables".to_owned(),
        force: false,
        size_bytes: i64::try_from(bytes.len()).unwrap(),
        sha256: Some(sha256_hex(bytes)),
        idempotency_key: Some("once".to_owned()),
    }
}

async fn send(uploads: &SkillUploads, id: &str, bytes: &[u8], from: usize) {
    for (at, piece) in (from..).step_by(1_000).zip(bytes[from..].chunks(1_000)) {
        let at = i64::try_from(at).unwrap();
        uploads.append(id, at, piece.to_vec()).await.unwrap();
    }
}

#[tokio::test]
async fn a_skill_in_pieces_ends_as_one_proven_blob() {
    let dir = folder();
    let service = service(dir.path(), Clock::fixed(NOW)).await;
    let uploads = service.skill_uploads();
    let bytes = skill(10_500);
    let begun = uploads.begin(announced(&bytes)).await.unwrap();
    let id = begun.upload_id.as_str();

    uploads
        .append(id, 0, bytes[..1_000].to_vec())
        .await
        .unwrap();
    // An answer that was lost: the same piece again, and the same upload by its key.
    let again = uploads
        .append(id, 0, bytes[..1_000].to_vec())
        .await
        .unwrap();
    assert_eq!(again.received_bytes, 1_000);
    assert_eq!(
        uploads.begin(announced(&bytes)).await.unwrap().upload_id,
        id
    );
    for (at, piece) in [
        (0, vec![9; 1_000]),
        (2_000, vec![9; 10]),
        (500, vec![9; 10]),
    ] {
        let refused = uploads.append(id, at, piece).await;
        assert!(
            matches!(refused, Err(ServiceError::Conflict { .. })),
            "{at}"
        );
    }
    let early = uploads.commit(id).await;
    assert!(matches!(early, Err(ServiceError::Conflict { .. })));
    send(&uploads, id, &bytes, 1_000).await;
    let beyond = uploads.append(id, 10_500, vec![1]).await;
    assert!(matches!(beyond, Err(ServiceError::Invalid { .. })));
    let done = uploads.commit(id).await.unwrap();

    assert_eq!(done.actual_sha256, Some(sha256_hex(&bytes)));
    assert_eq!(uploads.commit(id).await.unwrap(), done);
    assert_eq!(uploads.archive(id).await.unwrap(), bytes);
    let late = uploads.append(id, 0, vec![1]).await;
    assert!(matches!(late, Err(ServiceError::Conflict { .. })));
    service.close().await;
    let chunks = sqlite::number(
        &dir.path().join("state/state.sqlite"),
        "SELECT count(*) FROM skill_upload_chunks",
    );
    assert_eq!(chunks, 0);
}

#[tokio::test]
async fn a_skill_that_is_not_what_was_announced_is_never_whole_and_goes_in_its_time() {
    let dir = folder();
    let clock = Clock::fixed(NOW);
    let service = service(dir.path(), clock.clone()).await;
    let uploads = service.skill_uploads();
    let bytes = skill(2_000);
    let begun = uploads.begin(announced(&bytes)).await.unwrap();
    let id = begun.upload_id.as_str();
    send(&uploads, id, &vec![3; 2_000], 0).await;

    let refused = uploads.commit(id).await;

    assert!(matches!(refused, Err(ServiceError::Conflict { .. })));
    assert!(matches!(
        uploads.archive(id).await,
        Err(ServiceError::NotFound { .. })
    ));
    clock.advance(DAY_MS);
    assert!(matches!(
        uploads.commit(id).await,
        Err(ServiceError::NotFound { .. })
    ));
    let listed = uploads.list(None, PageLimit::default()).await.unwrap();
    assert!(listed.items.is_empty());
    assert_eq!(uploads.expire().await.unwrap(), 1);
    for wrong in [
        NewSkillUpload {
            size_bytes: 0,
            ..announced(&bytes)
        },
        NewSkillUpload {
            slug: "../up".to_owned(),
            ..announced(&bytes)
        },
        NewSkillUpload {
            sha256: Some("no digest".to_owned()),
            ..announced(&bytes)
        },
    ] {
        let refused = uploads.begin(wrong).await;
        assert!(matches!(refused, Err(ServiceError::Invalid { .. })));
    }
    service.close().await;
}

#[test]
fn media_images_and_uploads_are_listed_and_media_pruned_by_commands() {
    let home = Sandbox::new();
    home.zeroclaw(&["init"]).exits(0);
    block_on(async {
        let opened = Service::open(&home.root(), Clock::system(), HolderKind::Cli).await;
        let service = opened.unwrap();
        let media = service.media();
        put(&media, "heron", 100).await;
        put(&media, "egret", 100).await;
        media.record_image(image("i1", "heron")).await.unwrap();
        service
            .skill_uploads()
            .begin(announced(&skill(10)))
            .await
            .unwrap();
        service.close().await;
    });

    home.zeroclaw(&["media", "list"]).exits(0).says("egret");
    home.zeroclaw(&["media", "images"]).exits(0).says("a heron");
    home.zeroclaw(&["media", "uploads"])
        .exits(0)
        .says("tide-tables");
    home.zeroclaw(&["media", "prune", "--yes"]).exits(2);
    let prune = ["media", "prune", "--max-bytes", "100"];
    home.zeroclaw(&prune).exits(10).says("to delete: 1 media");
    home.zeroclaw(&[&prune[..], &["--yes"]].concat())
        .exits(0)
        .says("deleted: 1 media");
    home.zeroclaw(&["media", "list"]).exits(0).says("heron");
}
