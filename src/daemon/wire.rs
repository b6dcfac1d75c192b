//! Messages: JSON-RPC 2.0, one a line.

use std::error::Error;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::model::ErrorKind;
use crate::service::{Request, ServiceError};

/// Version of what is said on the wire; a change that old clients cannot read counts it up.
pub const PROTOCOL: u32 = 1;

/// JSON-RPC's own codes.
const PARSE_ERROR: i64 = -32_700;
const INVALID_REQUEST: i64 = -32_600;
const METHOD_NOT_FOUND: i64 = -32_601;
const INVALID_PARAMS: i64 = -32_602;
const INTERNAL_ERROR: i64 = -32_603;
/// What the language server protocol says for the same.
const CANCELLED: i64 = -32_800;
/// From here down codes are this service's own: the exit code of the command that fails the same way is taken off.
const SERVICE_ERRORS: i64 = -32_000;

/// Longest part of a stranger's words that is repeated to them.
const MAX_REPEATED: usize = 64;

/// A failed call, as it travels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct RpcError {
    /// What kind it is, for JSON-RPC.
    pub code: i64,
    /// What is wrong, a lowercase phrase.
    pub message: String,
    /// What else is known.
    #[serde(default)]
    pub data: Box<ErrorData>,
}

/// What else is known of a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorData {
    /// What kind it is, in the words of `--json`.
    #[serde(default)]
    pub kind: String,
    /// What lies behind it, nearest first.
    #[serde(default)]
    pub causes: Vec<String>,
    /// What can be done about it.
    #[serde(default)]
    pub hint: Option<String>,
}

impl RpcError {
    fn new(code: i64, kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            data: Box::new(ErrorData {
                kind: kind.as_str().to_owned(),
                ..ErrorData::default()
            }),
        }
    }

    pub(super) fn parse(message: impl Into<String>) -> Self {
        Self::new(PARSE_ERROR, ErrorKind::Usage, message)
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(INVALID_REQUEST, ErrorKind::Usage, message)
    }

    pub(super) fn params(message: impl Into<String>) -> Self {
        Self::new(INVALID_PARAMS, ErrorKind::Usage, message)
    }

    pub(super) fn unknown_method(method: &str) -> Self {
        let told: String = method.chars().take(MAX_REPEATED).collect();
        Self::new(
            METHOD_NOT_FOUND,
            ErrorKind::Usage,
            format!("no method {told:?}"),
        )
    }

    pub(super) fn cancelled() -> Self {
        Self::new(
            CANCELLED,
            ErrorKind::Refused,
            "cancelled; a write that had begun is done all the same",
        )
    }

    pub(super) fn panicked() -> Self {
        Self::new(INTERNAL_ERROR, ErrorKind::Internal, "a defect stopped this")
    }

    pub(super) fn refused(message: impl Into<String>) -> Self {
        Self::new(code_of(ErrorKind::Refused), ErrorKind::Refused, message)
    }

    pub(super) fn busy(message: impl Into<String>) -> Self {
        Self::new(code_of(ErrorKind::Busy), ErrorKind::Busy, message)
    }

    pub(super) fn stopping() -> Self {
        Self::busy("the daemon is stopping; nothing was done")
    }

    /// What kind it is; `None` for words of other releases.
    #[must_use]
    pub fn kind(&self) -> Option<ErrorKind> {
        ErrorKind::parse(&self.data.kind)
    }
}

impl From<&ServiceError> for RpcError {
    fn from(error: &ServiceError) -> Self {
        let mut told = Self::new(code_of(error.kind()), error.kind(), error.to_string());
        told.data.hint = error.hint();
        let mut next = error.source();
        while let Some(source) = next {
            let text = source.to_string();
            // Wrappers that say only what they wrap would say everything twice.
            if *told.data.causes.last().unwrap_or(&told.message) != text {
                told.data.causes.push(text);
            }
            next = source.source();
        }
        told
    }
}

fn code_of(kind: ErrorKind) -> i64 {
    match kind {
        ErrorKind::Usage => INVALID_PARAMS,
        ErrorKind::NotInitialised => SERVICE_ERRORS - 3,
        ErrorKind::Busy => SERVICE_ERRORS - 4,
        ErrorKind::NewerSchema => SERVICE_ERRORS - 5,
        ErrorKind::Damaged => SERVICE_ERRORS - 6,
        ErrorKind::OlderSchema => SERVICE_ERRORS - 7,
        ErrorKind::NoSpace => SERVICE_ERRORS - 8,
        ErrorKind::NotFound => SERVICE_ERRORS - 9,
        ErrorKind::Refused => SERVICE_ERRORS - 10,
        ErrorKind::Internal => INTERNAL_ERROR,
    }
}

/// A message that asks for something.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// By which its answer is known, as written; `None` where no answer is wanted.
    pub(super) id: Option<&'a RawValue>,
    /// What is asked for.
    pub(super) method: String,
    /// With what, as written.
    pub(super) params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(default)]
    jsonrpc: Option<String>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
}

/// Why a line is no call.
pub(super) struct NoCall {
    /// What is told.
    pub(super) error: RpcError,
    /// Id of what it answers, as written.
    pub(super) id: Option<String>,
    /// It is no JSON, so that nothing behind it can be trusted either.
    pub(super) is_garbage: bool,
}

impl<'a> Call<'a> {
    pub(super) fn read(line: &'a [u8]) -> Result<Self, NoCall> {
        let garbage = |message: &str| NoCall {
            error: RpcError::parse(message),
            id: None,
            is_garbage: true,
        };
        let text = std::str::from_utf8(line).map_err(|_| garbage("the message is not UTF-8"))?;
        let frame: Frame<'a> = match serde_json::from_str(text) {
            Ok(frame) => frame,
            Err(error) if error.is_data() => {
                return Err(NoCall {
                    error: RpcError::invalid("the message is no JSON-RPC call"),
                    id: None,
                    is_garbage: false,
                });
            }
            Err(_) => return Err(garbage("the message is no JSON on one line")),
        };
        let is_id = |id: &&RawValue| {
            id.get()
                .starts_with(|c: char| c == '"' || c == '-' || c.is_ascii_digit())
        };
        let wrong = |message: &str| NoCall {
            error: RpcError::invalid(message),
            id: frame.id.filter(is_id).map(|id| id.get().to_owned()),
            is_garbage: false,
        };
        if frame.jsonrpc.as_deref() != Some("2.0") {
            return Err(wrong("\"jsonrpc\" is not \"2.0\""));
        }
        if frame.id.is_some_and(|id| !is_id(&id)) {
            return Err(wrong("the id is neither a text nor a number"));
        }
        let Some(method) = frame.method else {
            return Err(wrong("there is no method"));
        };
        Ok(Self {
            id: frame.id,
            method,
            params: frame.params,
        })
    }

    /// Its parameters; none are as good as an empty object.
    pub(super) fn params<T: for<'de> Deserialize<'de>>(&self) -> Result<T, RpcError> {
        let text = self.params.map_or("{}", RawValue::get);
        serde_json::from_str(text).map_err(|error| RpcError::params(error.to_string()))
    }

    /// The request it is, for the service.
    pub(super) fn request(&self) -> Result<Request, RpcError> {
        if !methods().contains(&self.method) {
            return Err(RpcError::unknown_method(&self.method));
        }
        #[derive(Serialize)]
        struct Tagged<'a> {
            method: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            params: Option<&'a RawValue>,
        }
        let whole = Tagged {
            method: &self.method,
            params: self.params,
        };
        let text = serde_json::to_string(&whole).map_err(|_| RpcError::panicked())?;
        match serde_json::from_str(&text) {
            Ok(request) => Ok(request),
            // Methods without parameters take an empty object for none, and the other way round.
            Err(error) => {
                let is_empty = self
                    .params
                    .is_none_or(|params| params.get().trim_matches(['{', '}', ' ']).is_empty());
                let other = match self.params {
                    Some(_) => json!({"method": self.method}),
                    None => json!({"method": self.method, "params": {}}),
                };
                let retried = is_empty.then(|| serde_json::from_value(other).ok());
                retried
                    .flatten()
                    .ok_or_else(|| RpcError::params(without_place(&error)))
            }
        }
    }
}

/// The place is one in a text that the client never wrote.
fn without_place(error: &serde_json::Error) -> String {
    let told = error.to_string();
    match told.rfind(" at line ") {
        Some(end) => told[..end].to_owned(),
        None => told,
    }
}

/// Names of all methods of the service, in the order of [`Request`].
///
/// Taken from the type itself, so that none can be forgotten: a wrong name is answered with the right ones.
#[must_use]
pub fn methods() -> &'static [String] {
    static METHODS: OnceLock<Vec<String>> = OnceLock::new();
    METHODS.get_or_init(|| {
        let told = serde_json::from_value::<Request>(json!({"method": ""}));
        let told = told
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        let names = told.split_once("expected").map_or("", |(_, names)| names);
        let quoted = names.split('`').skip(1).step_by(2);
        quoted.map(str::to_owned).collect()
    })
}

/// The line that answers a call.
pub(super) fn answer(id: &str, result: Result<String, RpcError>) -> String {
    match result {
        Ok(json) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{json}}}"#),
        Err(error) => failure(Some(id), &error),
    }
}

/// The line that tells of a failure; without an id where it is unknown to what it belongs.
pub(super) fn failure(id: Option<&str>, error: &RpcError) -> String {
    let id = id.unwrap_or("null");
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#,
        json_of(error)
    )
}

/// A line that nobody asked for by itself.
pub(super) fn notification(method: &str, params: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

/// JSON of a value of ours; none of them has keys that are no text, the one thing that could fail.
pub(super) fn json_of(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_methods_are_known_by_their_names() {
        assert_eq!(methods()[0], "status");
        assert!(methods().contains(&"sessions.list".to_owned()));
        assert!(methods().len() > 30);
    }

    #[test]
    fn a_call_without_parameters_takes_none_an_empty_object_or_null() {
        for params in ["", r#","params":{}"#, r#","params":null"#] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"status"{params}}}"#);
            let call = Call::read(line.as_bytes()).ok().unwrap();
            assert_eq!(call.request().unwrap(), Request::Status, "{line}");
            let line = line.replace("status", "cron.list");
            let call = Call::read(line.as_bytes()).ok().unwrap();
            assert_eq!(call.request().unwrap(), Request::CronList { agent: None });
        }
    }

    #[test]
    fn what_is_no_call_is_told_apart() {
        let read = |line: &str| {
            let no = Call::read(line.as_bytes()).err().unwrap();
            (no.error.code, no.is_garbage, no.id)
        };

        assert_eq!(read("{"), (PARSE_ERROR, true, None));
        assert_eq!(read("[]"), (INVALID_REQUEST, false, None));
        assert_eq!(
            read(r#"{"jsonrpc":"2.0","id":"a"}"#).2,
            Some("\"a\"".to_owned())
        );
        assert_eq!(
            read(r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#).0,
            INVALID_REQUEST
        );
        assert!(Call::read(&[0xff]).is_err());
    }

    #[test]
    fn a_wrong_parameter_is_named_without_a_place_in_a_text_nobody_wrote() {
        let line = r#"{"jsonrpc":"2.0","id":1,"method":"agents.show","params":{"agent":7}}"#;
        let error = Call::read(line.as_bytes())
            .ok()
            .unwrap()
            .request()
            .unwrap_err();

        assert_eq!(error.code, INVALID_PARAMS);
        assert!(!error.message.contains("line"), "{error}");
    }
}
