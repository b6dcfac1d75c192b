//! The statements of tables that are known by a key alone, run against the schema as it is.

use zeroclaw::model::{AgentId, FlowStatus, KnowledgeEdge, PageLimit, Tier, TokenStatus};
use zeroclaw::store::global::{audit, device, flow, knowledge};

use super::statements::filled;
use crate::support::sqlite::block_on;

#[test]
fn of_devices() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = filled(dir.path(), Tier::Global).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let mut tx = bulk.tx();

        let devices = device::list(&mut tx).await.unwrap();
        let ids: Vec<_> = devices.iter().map(|it| it.device_id.as_str()).collect();
        assert_eq!(ids, ["device-1", "device-1", "device-3", "device-2"]);
        let tokens: Vec<_> = devices.iter().map(|it| it.token).collect();
        let mut again = device::get_many(&mut tx, &tokens).await.unwrap();
        again.sort_by_key(|it| tokens.iter().position(|token| *token == it.token));
        assert_eq!(again, devices);

        // Described at last: the device that only its token was known of goes.
        let mut found = devices[3].clone();
        found.device_id = "device-4".to_owned();
        found.device_type = Some("phone".to_owned());
        found.status = TokenStatus::Active;
        found.status_reason = None;
        device::update(&mut tx, &found).await.unwrap();
        let stored = device::get_many(&mut tx, &[found.token]).await.unwrap();
        assert_eq!(stored, [found]);
        let of_tablet = device::revoke(&mut tx, "device-1", "lost", 7).await;
        assert_eq!(of_tablet.unwrap(), 1);
        assert_eq!(
            device::revoke(&mut tx, "device-1", "lost", 8)
                .await
                .unwrap(),
            0
        );
        assert!(device::insert(&mut tx, &devices[..1]).await.is_err());
    });
}

fn all() -> PageLimit {
    PageLimit::from(1_000)
}

#[test]
fn of_flows() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = filled(dir.path(), Tier::Global).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let mut tx = bulk.tx();

        let page = flow::list_runs(&mut tx, None, None, None, 5.into())
            .await
            .unwrap();
        let rest = flow::list_runs(&mut tx, None, None, page.next.as_deref(), all())
            .await
            .unwrap();
        let ids: Vec<_> = page
            .items
            .iter()
            .chain(&rest.items)
            .map(|run| run.flow_id.as_str())
            .collect();
        assert_eq!(ids, ["r8", "r7", "r6", "r5", "r4", "r3", "r2", "r1"]);
        for mut run in flow::get_runs(&mut tx, &ids).await.unwrap() {
            run.revision += 1;
            run.detail_json = Some("{}".to_owned());
            flow::upsert_run(&mut tx, &run).await.unwrap();
            assert_eq!(
                flow::get_runs(&mut tx, &[&run.flow_id]).await.unwrap(),
                [run]
            );
        }
        let paused = flow::list_runs(
            &mut tx,
            Some(FlowStatus::Paused),
            Some("pruning"),
            None,
            all(),
        )
        .await
        .unwrap();
        assert_eq!(paused.items.len(), 1);

        let events = flow::events_of(&mut tx, "r3", all()).await.unwrap();
        assert_eq!(events.len(), 2);
        let mut copy = events[0].clone();
        copy.event_id = "new".to_owned();
        flow::insert_events(&mut tx, &[copy.clone()]).await.unwrap();
        assert_eq!(
            flow::get_events(&mut tx, &["new", "none"]).await.unwrap(),
            [copy]
        );
        assert!(flow::insert_events(&mut tx, &events).await.is_err());

        let page = flow::list_proposals(&mut tx, None, None, 2.into())
            .await
            .unwrap();
        let rest = flow::list_proposals(&mut tx, None, page.next.as_deref(), all())
            .await
            .unwrap();
        let ids: Vec<_> = page
            .items
            .iter()
            .chain(&rest.items)
            .map(|it| it.proposal_id.as_str())
            .collect();
        assert_eq!(ids, ["p5", "p3", "p2", "p1", "p4"]);
        for mut proposal in flow::get_proposals(&mut tx, &ids).await.unwrap() {
            proposal.status_reason = Some("because".to_owned());
            flow::upsert_proposal(&mut tx, &proposal).await.unwrap();
            assert_eq!(
                flow::get_proposals(&mut tx, &[&proposal.proposal_id])
                    .await
                    .unwrap(),
                [proposal]
            );
        }
        let of_run = flow::list_proposals(&mut tx, Some("r5"), None, all())
            .await
            .unwrap();
        assert_eq!(of_run.items.len(), 2);
    });
}

#[test]
fn of_knowledge_and_audit() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let db = filled(dir.path(), Tier::Global).await;
        let mut bulk = db.begin_bulk().await.unwrap();
        let mut tx = bulk.tx();

        let page = knowledge::list_nodes(&mut tx, None, None, 1.into())
            .await
            .unwrap();
        let rest = knowledge::list_nodes(&mut tx, None, page.next.as_deref(), all())
            .await
            .unwrap();
        assert_eq!(
            (
                page.items[0].node_id.as_str(),
                rest.items[0].node_id.as_str()
            ),
            ("n2", "n1")
        );
        let mut node = rest.items[0].clone();
        node.tags.push("a, b".to_owned());
        knowledge::upsert_node(&mut tx, &node).await.unwrap();
        assert_eq!(
            knowledge::get_nodes(&mut tx, &["n1", "none"])
                .await
                .unwrap(),
            [node]
        );
        assert_eq!(
            knowledge::list_nodes(&mut tx, Some("technology"), None, all())
                .await
                .unwrap()
                .items
                .len(),
            1
        );
        let edges = knowledge::edges_at(&mut tx, "n2", all()).await.unwrap();
        assert_eq!(edges.len(), 2);
        let none = KnowledgeEdge {
            relation: "none".to_owned(),
            ..edges[0].clone()
        };
        let mut asked = edges.clone();
        asked.push(none.clone());
        let mut found = knowledge::get_edges(&mut tx, &asked).await.unwrap();
        found.sort();
        assert_eq!(found, edges);
        knowledge::insert_edges(&mut tx, &[none]).await.unwrap();
        assert!(knowledge::insert_edges(&mut tx, &edges).await.is_err());

        let page = audit::list(&mut tx, None, None, None, 1.into())
            .await
            .unwrap();
        let rest = audit::list(&mut tx, None, None, page.next.as_deref(), all())
            .await
            .unwrap();
        let ids: Vec<_> = page
            .items
            .iter()
            .chain(&rest.items)
            .map(|it| it.event_id.as_str())
            .collect();
        assert_eq!(ids, ["a2", "a1", "a3"]);
        let atlas = AgentId::new("atlas").unwrap();
        let of_atlas = audit::list(&mut tx, Some(&atlas), Some("store"), None, all())
            .await
            .unwrap();
        let mut copy = of_atlas.items[0].clone();
        copy.event_id = "new".to_owned();
        audit::insert(&mut tx, &[copy.clone()]).await.unwrap();
        assert_eq!(
            audit::get_many(&mut tx, &["new"]).await.unwrap(),
            [copy.clone()]
        );
        assert!(audit::insert(&mut tx, &[copy]).await.is_err());
    });
}
