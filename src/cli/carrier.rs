//! Where a request goes.
//!
//! Today that is always a service opened in this process, for requests to look: it creates, migrates and
//! checkpoints nothing then. Commands ask here and nowhere else, so that they need not know when a
//! request goes to a living daemon instead.

use zeroclaw::service::{HolderKind, Request, Response, Service};

use super::{CliError, Context, Exit};

/// A way to ask several requests of one state.
#[derive(Debug)]
pub(crate) struct Carrier {
    service: Service,
}

impl Carrier {
    /// Opens the root to look.
    ///
    /// # Errors
    ///
    /// [`CliError`] when there is no root or it cannot be opened.
    pub(crate) async fn open(context: &Context) -> Result<Self, CliError> {
        let service = Service::look(&context.root, context.clock.clone()).await?;
        Ok(Self { service })
    }

    /// Asks one request.
    ///
    /// # Errors
    ///
    /// [`CliError`] with what the service answered instead.
    pub(crate) async fn ask(&self, request: Request) -> Result<Response, CliError> {
        Ok(self.service.dispatch(request).await?)
    }

    /// Lets the root go.
    pub(crate) async fn close(self) {
        self.service.close().await;
    }
}

/// Asks one request and lets the root go.
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

/// Opens the root to look, does the work, and lets the root go.
///
/// # Errors
///
/// [`CliError`] when there is no root, and what the work answers.
pub(crate) async fn looking<T>(
    context: &Context,
    work: impl AsyncFnOnce(&Service) -> Result<T, CliError>,
) -> Result<T, CliError> {
    let service = Service::look(&context.root, context.clock.clone()).await?;
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
