//! Where a request goes: to the living daemon of the root, else to a service opened in this process.
//!
//! Commands ask here and nowhere else, so that they need not know. Both ways run the same code on the same rows, so
//! the answer is the same.
//!
//! A service opened here looks: it creates, migrates and checkpoints nothing. Only a request that writes opens the root
//! for writing, for its moment.

use std::path::{Path, PathBuf};

use tokio::sync::Mutex;
use zeroclaw::daemon::{Client, ClientError};
use zeroclaw::service::{Clock, HolderKind, Request, Response, Service};

use super::daemon::socket_elsewhere;
use super::{CliError, Context, Exit};

/// A way to ask several requests of one state.
#[derive(Debug)]
pub(crate) struct Carrier {
    root: PathBuf,
    clock: Clock,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Daemon(Mutex<Client>),
    Here(Service),
}

impl Carrier {
    /// Finds the root's daemon, or opens the root to look.
    ///
    /// # Errors
    ///
    /// [`CliError`] when there is no root or it cannot be opened.
    pub(crate) async fn open(context: &Context) -> Result<Self, CliError> {
        let way = match daemon(context).await {
            Some(client) => Way::Daemon(Mutex::new(client)),
            None => Way::Here(look(&context.root, &context.clock).await?),
        };
        Ok(Self {
            root: context.root.clone(),
            clock: context.clock.clone(),
            way,
        })
    }

    /// Asks one request.
    ///
    /// # Errors
    ///
    /// [`CliError`] with what the service answered instead.
    pub(crate) async fn ask(&self, request: Request) -> Result<Response, CliError> {
        let client = match &self.way {
            Way::Here(service) => return Ok(service.dispatch(request).await?),
            Way::Daemon(client) => client,
        };
        let answer = client.lock().await.ask(&request).await;
        match answer {
            Ok(answer) => Ok(answer),
            Err(ClientError::Rpc(error)) => Err(error.into()),
            // It stopped meanwhile, is of another release, or cannot say this: the rows are there all the same.
            Err(error) => {
                tracing::debug!(%error, "looked up here");
                let service = look(&self.root, &self.clock).await?;
                let answer = service.dispatch(request).await;
                service.close().await;
                Ok(answer?)
            }
        }
    }

    /// Lets the root go.
    pub(crate) async fn close(self) {
        if let Way::Here(service) = self.way {
            service.close().await;
        }
    }
}

async fn look(root: &Path, clock: &Clock) -> Result<Service, CliError> {
    Ok(Service::look(root, clock.clone()).await?)
}

/// The root's daemon, if one lives and answers as it should.
async fn daemon(context: &Context) -> Option<Client> {
    let socket = socket_elsewhere();
    match Client::find(&context.root, socket.as_deref()).await {
        Ok(found) => found,
        Err(error) => {
            tracing::warn!(%error, "the daemon gives no answer");
            None
        }
    }
}

/// Asks one request that only looks, and lets the root go.
///
/// # Errors
///
/// As [`Carrier::open`] and [`Carrier::ask`].
pub(crate) async fn ask(context: &Context, request: Request) -> Result<Response, CliError> {
    let carrier = Carrier::open(context).await?;
    let answer = carrier.ask(request).await;
    carrier.close().await;
    answer
}

/// Asks one request that writes: the living daemon does it, else the root is opened for writing for its moment.
///
/// # Errors
///
/// [`CliError`] with what the service answered instead, or when somebody else holds the root. Where the daemon went
/// away in the middle nobody knows whether it was done, and the error says so.
pub(crate) async fn change(context: &Context, request: Request) -> Result<Response, CliError> {
    // What could not be told afterwards is not asked for: the lock then says who has the root.
    if Response::is_readable(&request)
        && let Some(mut client) = daemon(context).await
    {
        return match client.ask(&request).await {
            Ok(answer) => Ok(answer),
            Err(ClientError::Rpc(error)) => Err(error.into()),
            Err(error) => Err(CliError::new(
                Exit::Busy,
                "the daemon gave no answer; it may have been done",
            )
            .because(&error)
            .hint("look before you do it again")),
        };
    }
    writing(context, async |service| {
        Ok(service.dispatch(request).await?)
    })
    .await
}

/// Whether the root has a daemon that answers: what is too large for one request goes to it in parts.
pub(crate) async fn is_served(context: &Context) -> bool {
    daemon(context).await.is_some()
}

/// Opens the root to look, does the work, and lets the root go.
///
/// # Errors
///
/// [`CliError`] when there is no root, and what the work answers.
pub(crate) async fn looking<T>(
    context: &Context,
    work: impl AsyncFnOnce(&Service) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let service = look(&context.root, &context.clock).await?;
    let done = work(&service).await;
    service.close().await;
    done
}

/// Opens the root for writing, does the work, and lets the root go.
///
/// # Errors
///
/// [`CliError`] when somebody holds the root, and what the work answers.
pub(crate) async fn writing<T>(
    context: &Context,
    work: impl AsyncFnOnce(&Service) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let service = Service::open(&context.root, context.clock.clone(), HolderKind::Cli).await?;
    let done = work(&service).await;
    service.close().await;
    done
}

impl CliError {
    /// An answer that does not belong to its question: a defect.
    pub(crate) fn wrong_answer() -> Self {
        Self::new(Exit::Internal, "the answer does not fit the request")
    }
}
