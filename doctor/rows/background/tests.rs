use zeroclaw::model::{TaskOrigin, TaskOwnerKind};

use super::*;

fn task(status: TaskStatus, word: &str) -> BackgroundTask {
    BackgroundTask {
        task: TaskRun {
            task_id: "t".to_owned(),
            owner_kind: TaskOwnerKind::Delegate,
            source_id: None,
            agent_id: None,
            label: None,
            status,
            status_detail: Some(word.to_owned()),
            created_at_ms: 1,
            started_at_ms: Some(1),
            ended_at_ms: None,
            duration_ms: None,
            output: None,
            error: None,
            detail_json: None,
            origin: TaskOrigin::default(),
        },
        delivery: None,
        said_by: SaidBy::Store,
    }
}

fn file(
    mut task: BackgroundTask,
    said_by: SaidBy,
    weight: i64,
    ended_at_ms: i64,
) -> BackgroundTask {
    let sha256 = format!("{weight}-{ended_at_ms}");
    let mut details = Map::new();
    ResultFile {
        weight,
        ended_at_ms,
        sha256,
        agent: None,
    }
    .put(&mut details);
    task.task.detail_json = Some(Value::Object(details).to_string());
    task.said_by = said_by;
    task
}

fn rows() -> Vec<BackgroundTask> {
    let mut done = task(TaskStatus::Succeeded, "completed");
    done.task.output = Some("from the store".to_owned());
    done.task.origin.depth = 2;
    done.task.ended_at_ms = Some(5);
    let mut ended = file(task(TaskStatus::Failed, "failed"), SaidBy::StatusFile, 2, 7);
    ended.task.error = Some("from a file".to_owned());
    ended.task.ended_at_ms = Some(7);
    let mut later = file(
        task(TaskStatus::Succeeded, "completed"),
        SaidBy::StatusFile,
        2,
        9,
    );
    later.task.output = Some("from a later file".to_owned());
    later.task.ended_at_ms = Some(9);
    let mut output = file(
        task(TaskStatus::Lost, "unknown"),
        SaidBy::OutputFile,
        1,
        i64::MIN,
    );
    output.task.output = Some("an output alone".to_owned());
    vec![
        task(TaskStatus::Lost, "running"),
        task(TaskStatus::Lost, "lost"),
        done,
        file(
            task(TaskStatus::Lost, "running"),
            SaidBy::StatusFile,
            0,
            i64::MIN,
        ),
        ended,
        later,
        output,
    ]
}

fn end(task: &BackgroundTask) -> (TaskStatus, Option<&str>, Option<&str>) {
    let task = &task.task;
    (task.status, task.output.as_deref(), task.error.as_deref())
}

fn both(stored: &BackgroundTask, read: &BackgroundTask) -> BackgroundTask {
    BackgroundTask::settled(stored, read).unwrap_or_else(|| stored.clone())
}

#[test]
fn an_end_beats_none_and_a_file_beats_the_store() {
    let [open, lost, done, running, ended, later, output] = &rows()[..] else {
        panic!("seven rows")
    };

    assert_eq!(end(&both(open, done)), end(done));
    assert_eq!(end(&both(lost, done)), end(lost), "its program gave it up");
    assert_eq!(end(&both(lost, running)), end(lost), "a file says no end");
    assert_eq!(end(&both(lost, ended)), end(ended));
    assert_eq!(
        end(&both(done, ended)),
        (
            TaskStatus::Failed,
            Some("from the store"),
            Some("from a file")
        )
    );
    assert_eq!(end(&both(ended, later)), end(later));
    assert_eq!(end(&both(later, ended)), end(later));
    assert_eq!(
        end(&both(done, output)),
        (TaskStatus::Succeeded, Some("an output alone"), None)
    );
    assert_eq!(end(&both(output, done)).0, TaskStatus::Succeeded);
    assert_eq!(both(ended, done).task.origin.depth, 2, "filled in");
}

#[test]
fn a_file_and_the_store_say_the_same_in_either_order() {
    let rows = rows();
    for file in rows.iter().filter(|row| row.said_by != SaidBy::Store) {
        for store in rows.iter().filter(|row| row.said_by == SaidBy::Store) {
            let (first, second) = (both(store, file), both(file, store));
            assert_eq!(first.task.status, second.task.status, "{store:?} {file:?}");
        }
    }
}

#[test]
fn what_was_settled_is_settled_and_proves_both() {
    let rows = rows();
    for stored in &rows {
        for read in &rows {
            let settled = both(stored, read);
            assert_eq!(BackgroundTask::settled(&settled, read), None);
            assert!(
                BackgroundTask::is_same(&settled, read)
                    || BackgroundTask::absorbs(&settled, read)
                    || read.said_by == SaidBy::Store,
                "{stored:?} {read:?}"
            );
        }
    }
}

#[test]
fn another_end_than_the_one_read_is_no_proof() {
    let read = &rows()[2];
    let mut stored = read.clone();
    stored.task.output = Some("something else".to_owned());

    assert!(!BackgroundTask::absorbs(&stored, read));
    assert_eq!(BackgroundTask::settled(&stored, read), None);
}
