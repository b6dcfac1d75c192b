//! From a request to its use case.

use std::time::Duration;

use super::append::invalid;
use super::{
    PluginQuery, Removal, RemoveOptions, Request, Response, RetentionOptions, Revoked, Service,
    ServiceError, VfsRemoved, WriteMode,
};
use crate::model::{Append, Content, TaskOwnerKind};
use crate::store::agent::memory::MemoryFilter;
use crate::store::agent::search::SearchFilter;
use crate::store::agent::session::SessionFilter;
use crate::store::global::acp::AcpFilter;
use crate::store::global::commitment::CommitmentFilter;
use crate::store::global::cost::CostFilter;
use crate::store::global::delivery_queue::DeliveryFilter;
use crate::store::global::diagnostic::DiagnosticFilter;
use crate::store::global::task::TaskFilter;

impl Service {
    /// Answers a request.
    ///
    /// # Errors
    ///
    /// [`ServiceError`], whose kind says what to make of it.
    pub async fn dispatch(&self, request: Request) -> Result<Response, ServiceError> {
        Ok(match request {
            Request::Status => Response::Status(self.status().await?),
            Request::AgentsList => Response::Agents(self.agents().await?),
            Request::AgentsShow { agent } => Response::Agent(self.agent_overview(&agent).await?),
            Request::AgentsCreate { agent } => {
                Response::AgentCreated(self.create_agent(&agent).await?)
            }
            Request::AgentsRetire { agent, reason } => {
                Response::AgentChanged(self.retire_agent(&agent, reason).await?)
            }
            Request::AgentsActivate { agent } => {
                Response::AgentChanged(self.activate_agent(&agent).await?)
            }
            Request::SessionsList {
                agent,
                channel,
                chat_type,
                status,
                text,
                with_archived,
                since_ms,
                until_ms,
                before,
                limit,
            } => {
                let filter = SessionFilter {
                    channel,
                    chat_type,
                    status,
                    text,
                    with_archived,
                    since_ms,
                    until_ms,
                    ..SessionFilter::default()
                };
                let page = self
                    .list_sessions(agent.as_ref(), &filter, before.as_deref(), limit)
                    .await?;
                Response::Sessions(page)
            }
            Request::SessionsShow {
                agent,
                session,
                order,
                cursor,
                payloads,
                limit,
            } => {
                let session = self.find_session(agent.as_ref(), &session).await?;
                Response::Transcript(
                    self.show_session(session, order, cursor, limit, payloads)
                        .await?,
                )
            }
            Request::SessionsEvent {
                agent,
                session,
                event,
            } => {
                let session = self.find_session(agent.as_ref(), &session).await?;
                Response::Event(
                    self.event(&session.agent_id, &session.session_id, &event)
                        .await?,
                )
            }
            Request::SessionsSearch {
                text,
                agent,
                newest,
                role,
                since_ms,
                until_ms,
                limit,
            } => {
                let filter = SearchFilter {
                    role,
                    since_ms,
                    until_ms,
                };
                Response::Search(
                    self.search_sessions(&text, agent.as_ref(), newest, &filter, limit)
                        .await?,
                )
            }
            Request::SessionsAppend {
                agent,
                session,
                header,
                events,
                idempotency_key,
                expected_parent,
            } => {
                let append = Append {
                    session,
                    header,
                    events,
                    idempotency_key,
                    expected_parent,
                };
                Response::Appended(self.append(&agent, append).await?)
            }
            Request::SessionsCreate {
                agent,
                session,
                header,
            } => {
                let made = self.create_session(&agent, session, header).await?;
                Response::SessionMade(Box::new(made))
            }
            Request::SessionsPatch {
                agent,
                session,
                patch,
                expected_revision,
            } => {
                let found = self.find_session(agent.as_ref(), &session).await?;
                let (agent, id) = (&found.agent_id, &found.session_id);
                let patched = self.patch_session(agent, id, patch, expected_revision);
                Response::Patched(patched.await?)
            }
            Request::SessionsFork {
                agent,
                session,
                at,
                session_key,
            } => {
                let found = self.find_session(agent.as_ref(), &session).await?;
                let (agent, id) = (&found.agent_id, &found.session_id);
                let forked = self.fork_session(agent, id, at, session_key).await?;
                Response::Forked(Box::new(forked))
            }
            Request::SessionsReset { agent, session } => {
                let found = self.find_session(agent.as_ref(), &session).await?;
                let reset = self.reset_session(&found.agent_id, &found.session_id);
                Response::SessionReset(reset.await?)
            }
            Request::SessionsDelete {
                agent,
                session,
                even_pinned,
                without_copy,
                dry_run,
            } => {
                let found = self.find_session(agent.as_ref(), &session).await?;
                let options = RemoveOptions {
                    even_pinned,
                    without_copy,
                    dry_run,
                };
                let removed = self.remove_session(&found.agent_id, &found.session_id, options);
                Response::SessionRemoved(Box::new(removed.await?))
            }
            Request::SessionsPrune {
                agent,
                rules,
                clock_is_right,
                dry_run,
            } => {
                let options = RetentionOptions {
                    agent,
                    rules,
                    dry_run,
                    yes: !dry_run,
                    clock_is_right,
                };
                Response::SessionsPruned(self.apply_retention(&options).await?)
            }
            Request::SessionsImport { agent, lines, name } => {
                let mut from = lines.as_bytes();
                let imported = self.import_session(agent.as_ref(), &mut from, name.as_ref());
                Response::SessionImported(imported.await?)
            }
            Request::SessionsAcp {
                agent,
                state,
                before,
                limit,
            } => {
                let filter = AcpFilter {
                    agent_id: agent,
                    state,
                };
                let page = self.list_acp(&filter, before.as_deref(), limit).await?;
                Response::AcpSessions(page)
            }
            Request::SessionsArtifacts { agent, session } => {
                Response::Artifacts(self.list_artifacts(agent.as_ref(), &session).await?)
            }
            Request::SessionsArtifact {
                agent,
                session,
                artifact,
            } => Response::Artifact(
                self.show_artifact(agent.as_ref(), &session, &artifact)
                    .await?,
            ),
            Request::SessionsRunArtifacts {
                agent,
                run,
                after,
                limit,
            } => Response::RunArtifacts(
                self.list_run_artifacts(&agent, run.as_deref(), after.as_deref(), limit)
                    .await?,
            ),
            Request::SessionsRunArtifact { agent, run, path } => {
                Response::RunArtifact(self.run_artifact(&agent, &run, &path).await?)
            }
            Request::SessionsTrajectory {
                agent,
                session,
                run,
                after,
                limit,
            } => {
                let (agent, run, after) = (agent.as_ref(), run.as_deref(), after.as_deref());
                let page = self.list_trajectory(agent, &session, run, after, limit);
                Response::Trajectory(page.await?)
            }
            Request::SessionsParentStream {
                agent,
                session,
                run,
                after,
                limit,
            } => {
                let (agent, run, after) = (agent.as_ref(), run.as_deref(), after.as_deref());
                let page = self.list_parent_stream(agent, &session, run, after, limit);
                Response::ParentStream(page.await?)
            }
            Request::CacheList {
                agent,
                scope,
                after,
                limit,
            } => Response::Cache(
                self.list_cache(&agent, scope.as_deref(), after.as_deref(), limit)
                    .await?,
            ),
            Request::CacheClear {
                agent,
                scope,
                dry_run,
            } => Response::CacheCleared(
                self.clear_cache(agent.as_ref(), scope.as_deref(), dry_run)
                    .await?,
            ),
            Request::CronList { agent } => {
                Response::CronJobs(self.list_cron(agent.as_ref()).await?)
            }
            Request::CronShow { job } => Response::CronJob(Box::new(self.show_cron(&job).await?)),
            Request::CronRuns { job, before, limit } => {
                Response::Tasks(self.list_cron_runs(job, before.as_deref(), limit).await?)
            }
            Request::TasksList {
                agent,
                kind,
                status,
                before,
                limit,
            } => {
                let filter = TaskFilter {
                    owner_kind: kind,
                    agent_id: agent,
                    status,
                    without_kind: kind.is_none().then_some(TaskOwnerKind::Cron),
                    ..TaskFilter::default()
                };
                Response::Tasks(self.list_tasks(&filter, before.as_deref(), limit).await?)
            }
            Request::TasksShow { task } => Response::Task(Box::new(self.show_task(&task).await?)),
            Request::TasksOutput { task, path } => {
                Response::TaskOutput(self.task_output(&task, path.as_deref()).await?)
            }
            Request::TasksGoals { after, limit } => {
                Response::Goals(self.list_goals(after.as_deref(), limit).await?)
            }
            Request::TasksSettlements { after, limit } => {
                Response::Settlements(self.list_settlements(after.as_deref(), limit).await?)
            }
            Request::TasksCancel { task } => Response::Cancelled(self.tasks().cancel(&task).await?),
            Request::TasksWait { task, timeout_ms } => {
                let timeout = Duration::from_millis(timeout_ms);
                let ended = self.tasks().wait(&task, timeout).await?;
                Response::Ended(ended.map(Box::new))
            }
            Request::TasksSweep => Response::Swept(self.sweep_tasks().await?),
            Request::LeasesList => Response::Leases(self.list_leases().await?),
            Request::DevicesList => Response::Devices(self.list_devices().await?),
            Request::DevicesPair { name, life_ms } => {
                Response::CodeIssued(self.issue_pairing_code(name, life_ms).await?)
            }
            Request::DevicesRequests => {
                Response::PairingRequests(self.list_pairing_requests().await?)
            }
            Request::DevicesApprove { request } => {
                Response::PairingDecided(self.decide_pairing(&request, true).await?)
            }
            Request::DevicesDeny { request } => {
                Response::PairingDecided(self.decide_pairing(&request, false).await?)
            }
            Request::ChannelsStanding { peer, meta_json } => {
                Response::ChannelStanding(self.channel_standing(peer, meta_json).await?)
            }
            Request::ChannelsRequests { channel } => {
                Response::ChannelRequests(self.list_channel_requests(channel.as_deref()).await?)
            }
            Request::ChannelsApprove { channel, code } => {
                Response::ChannelDecided(self.decide_channel_request(&channel, &code, true).await?)
            }
            Request::ChannelsDeny { channel, code } => {
                Response::ChannelDecided(self.decide_channel_request(&channel, &code, false).await?)
            }
            Request::ChannelsAllowed { channel } => {
                Response::ChannelAllowed(self.list_allowed(channel.as_deref()).await?)
            }
            Request::ChannelsAllow { peer } => {
                Response::Changed(self.allow_on_channel(peer).await?)
            }
            Request::ChannelsRemove { peer } => {
                Response::Done(self.shut_out_of_channel(peer).await?)
            }
            Request::DevicesRevoke { device } => {
                let revoked = self.revoke_device(&device).await?;
                Response::DeviceRevoked(Revoked {
                    device_id: device,
                    revoked,
                })
            }
            Request::CostsList {
                agent,
                from_ms,
                to_ms,
                before,
                limit,
            } => {
                let filter = CostFilter {
                    agent_id: agent,
                    from_ms,
                    to_ms,
                };
                Response::Costs(self.list_costs(&filter, before.as_deref(), limit).await?)
            }
            Request::CostsReport {
                by,
                agent,
                from_ms,
                to_ms,
            } => {
                let filter = CostFilter {
                    agent_id: agent,
                    from_ms,
                    to_ms,
                };
                Response::CostReport(self.add_up_costs(&filter, by).await?)
            }
            Request::LogsList {
                level,
                agent,
                category,
                since_ms,
                contains,
                before,
                limit,
            } => {
                let filter = DiagnosticFilter {
                    level,
                    agent_id: agent,
                    category,
                    since_ms,
                    contains,
                };
                let page = self.list_diagnostics(&filter, before.as_deref(), limit);
                Response::Diagnostics(page.await?)
            }
            Request::FlowsList {
                status,
                procedure,
                before,
                limit,
            } => Response::Flows(
                self.list_flows(status, procedure.as_deref(), before.as_deref(), limit)
                    .await?,
            ),
            Request::FlowsShow { run } => Response::Flow(self.show_flow(&run).await?),
            Request::FlowsProposals { before, limit } => {
                Response::Proposals(self.list_proposals(before.as_deref(), limit).await?)
            }
            Request::FlowsClaims => Response::FlowClaims(self.flows().claims().await?),
            Request::FlowsApprove { run, actor } => {
                Response::FlowDecided(Box::new(self.flows().approve(&run, &actor).await?))
            }
            Request::FlowsDeny { run, actor, reason } => {
                let decided = self.flows().deny(&run, &actor, reason.as_deref()).await?;
                Response::FlowDecided(Box::new(decided))
            }
            Request::DeliveryList {
                status,
                channel,
                before,
                limit,
            } => {
                let filter = DeliveryFilter { status, channel };
                let queue = self.deliveries();
                Response::Deliveries(queue.list(&filter, before.as_deref(), limit).await?)
            }
            Request::DeliveryShow { message } => {
                Response::Delivery(Box::new(self.deliveries().get(&message).await?))
            }
            Request::DeliveryRetry { message } => {
                Response::Delivery(Box::new(self.deliveries().retry(&message).await?))
            }
            Request::DeliveryRetryDead { channel } => {
                Response::DeliveriesRetried(self.deliveries().retry_dead(channel.as_deref()).await?)
            }
            Request::DeliveryConfirm { message } => {
                Response::Delivery(Box::new(self.deliveries().confirm(&message, None).await?))
            }
            Request::DeliveryDrop { message } => {
                Response::Delivery(Box::new(self.deliveries().give_up(&message).await?))
            }
            Request::DeliveryPrune {
                before_ms,
                is_dry_run,
            } => Response::DeliveriesPruned(self.deliveries().prune(before_ms, is_dry_run).await?),
            Request::CommitmentsList {
                status,
                agent,
                before,
                limit,
            } => {
                let filter = CommitmentFilter {
                    status,
                    agent_id: agent,
                };
                let all = self.commitments();
                Response::Commitments(all.list(&filter, before.as_deref(), limit).await?)
            }
            Request::CommitmentsShow { commitment } => {
                Response::Commitment(Box::new(self.commitments().get(&commitment).await?))
            }
            Request::CommitmentsDismiss { commitment } => {
                Response::Commitment(Box::new(self.commitments().dismiss(&commitment).await?))
            }
            Request::KnowledgeList {
                node_type,
                before,
                limit,
            } => Response::Knowledge(
                self.list_knowledge(node_type.as_deref(), before.as_deref(), limit)
                    .await?,
            ),
            Request::KnowledgeShow { node } => {
                Response::KnowledgeNode(self.show_knowledge(&node).await?)
            }
            Request::AuditList {
                agent,
                operation,
                before,
                limit,
            } => Response::Audit(
                self.list_audit(
                    agent.as_ref(),
                    operation.as_deref(),
                    before.as_deref(),
                    limit,
                )
                .await?,
            ),
            Request::MemoryList {
                agent,
                category,
                with_superseded,
                with_expired,
                before,
                limit,
            } => {
                let filter = MemoryFilter {
                    category,
                    with_superseded,
                    living_at_ms: (!with_expired).then(|| self.clock().now_ms()),
                };
                Response::Memories(
                    self.list_memories(agent.as_ref(), &filter, before.as_deref(), limit)
                        .await?,
                )
            }
            Request::MemorySearch {
                text,
                agent,
                with_expired,
                limit,
            } => Response::Memories(
                self.search_memories(&text, agent.as_ref(), with_expired, limit)
                    .await?,
            ),
            Request::MemoryShow { agent, memory } => {
                Response::MemoriesNamed(self.show_memory(&agent, &memory).await?)
            }
            Request::MemoryStore { agent, memory } => {
                Response::MemoryStored(Box::new(self.store_memory(&agent, memory).await?))
            }
            Request::MemoryForget { agent, memory } => {
                Response::MemoriesNamed(self.forget_memory(&agent, &memory).await?)
            }
            Request::MemoryPrune { agent, dry_run } => {
                Response::MemoriesPruned(self.prune_memories(agent.as_ref(), dry_run).await?)
            }
            Request::VfsTrees { agent } => Response::VfsTrees(self.vfs_trees(&agent).await?),
            Request::VfsList {
                agent,
                namespace,
                path,
                recursive,
                after,
                limit,
            } => {
                let vfs = self.vfs(&agent, namespace).await?;
                let after = after.as_deref();
                Response::VfsEntries(match recursive {
                    true => vfs.list_below(&path, after, limit).await?,
                    false => vfs.list(&path, after, limit).await?,
                })
            }
            Request::VfsRead {
                agent,
                namespace,
                path,
                offset,
                length,
            } => {
                let vfs = self.vfs(&agent, namespace).await?;
                Response::VfsPart(vfs.part(&path, offset, length).await?)
            }
            Request::VfsWrite {
                agent,
                namespace,
                path,
                content,
                is_executable,
            } => {
                let vfs = self.vfs(&agent, namespace).await?;
                let mode = WriteMode { is_executable };
                let entry = vfs.write(&path, bytes_of(content)?, mode).await?;
                Response::VfsWritten(Box::new(entry))
            }
            Request::VfsAppend {
                agent,
                namespace,
                path,
                content,
            } => {
                let vfs = self.vfs(&agent, namespace).await?;
                let entry = vfs.append(&path, bytes_of(content)?).await?;
                Response::VfsWritten(Box::new(entry))
            }
            Request::VfsMakeFolder {
                agent,
                namespace,
                path,
            } => {
                let vfs = self.vfs(&agent, namespace).await?;
                Response::Done(vfs.make_folder(&path).await?)
            }
            Request::VfsRename {
                agent,
                namespace,
                path,
                to,
            } => {
                let vfs = self.vfs(&agent, namespace).await?;
                Response::Done(vfs.rename(&path, &to).await?)
            }
            Request::VfsRemove {
                agent,
                namespace,
                path,
                recursive,
            } => {
                let vfs = self.vfs(&agent, namespace).await?;
                let removal = match recursive {
                    true => Removal::Tree,
                    false => Removal::Alone,
                };
                let entries = vfs.remove(&path, removal).await?;
                Response::VfsRemoved(VfsRemoved { entries })
            }
            Request::VfsSearch {
                agent,
                namespace,
                text,
                limit,
            } => Response::VfsHits(
                self.search_vfs(&agent, namespace.as_ref(), &text, limit)
                    .await?,
            ),
            Request::MemoryIndexed { text, agent, limit } => {
                Response::Indexed(self.find_indexed(&text, agent.as_ref(), limit).await?)
            }
            Request::MemoryReindex { agent, rebuild } => {
                Response::Reindexed(self.reindex_memory(agent.as_ref(), rebuild).await?)
            }
            Request::PluginsList => Response::Plugins(self.plugins().list().await?),
            Request::PluginsShow {
                plugin,
                namespace,
                blobs,
                with_values,
                after,
                limit,
            } => {
                let query = PluginQuery {
                    namespace,
                    blobs,
                    with_values,
                    after,
                    limit,
                };
                Response::Plugin(Box::new(self.plugins().show(&plugin, &query).await?))
            }
            Request::PluginsClear {
                plugin,
                namespace,
                dry_run,
            } => {
                let plugins = self.plugins();
                let cleared = plugins.clear(&plugin, namespace.as_deref(), dry_run);
                Response::PluginCleared(cleared.await?)
            }
            Request::PluginsBindings { plugin } => {
                Response::PluginBindings(self.plugins().bindings(plugin.as_deref()).await?)
            }
            Request::PluginsInstalled => {
                Response::PluginsInstalled(self.plugins().installed().await?)
            }
            Request::DbCheck { agent } => Response::Checks(self.check(agent.as_ref()).await?),
            Request::History { run: Some(run), .. } => Response::Run(self.run_history(&run).await?),
            Request::History { run: None, limit } => Response::Runs(self.list_runs(limit).await?),
            Request::BackupList { limit } => Response::Backups(self.list_backups(limit).await?),
        })
    }
}

fn bytes_of(content: Content) -> Result<Vec<u8>, ServiceError> {
    content
        .into_bytes()
        .map_err(|error| invalid("content", error.to_string()))
}
