//! What calls of models cost.

use serde::{Deserialize, Serialize};

use super::{AgentId, text_enum};

/// One call of a model, at the price it was recorded with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UsageCost {
    /// Identity.
    pub cost_id: String,
    /// The name it ran under then, which may be of nobody by now.
    pub agent_id: Option<AgentId>,
    /// The model.
    pub model: String,
    /// Tokens that went in.
    pub input_tokens: i64,
    /// Tokens that came out.
    pub output_tokens: i64,
    /// Those that went in and were paid as cached.
    pub cached_input_tokens: i64,
    /// All tokens, as recorded.
    pub total_tokens: i64,
    /// Price in US dollars, as recorded.
    pub cost_usd: f64,
    /// The price as it was written, where the number does not print as that.
    pub cost_usd_text: Option<String>,
    /// Whether the price of the model was known; if not, the cost is 0 and means nothing.
    pub has_price: bool,
    /// When it was recorded.
    pub recorded_at_ms: i64,
    /// That time as it was written, which may be finer.
    pub recorded_at_text: Option<String>,
    /// The life of the process that recorded it.
    pub process_id: Option<String>,
    /// The goal it served.
    pub goal_task_id: Option<String>,
    /// JSON text of what no column holds.
    pub detail_json: Option<String>,
}

/// What costs are added up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostGrouping {
    /// The agent.
    Agent,
    /// The model.
    Model,
    /// The day, UTC.
    Day,
}

text_enum!(CostGrouping {
    Agent => "agent",
    Model => "model",
    Day => "day",
});

/// Sums over some calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CostSums {
    /// Calls.
    pub calls: i64,
    /// Those without a known price, which `cost_usd` lacks.
    pub unpriced_calls: i64,
    /// Tokens that went in.
    pub input_tokens: i64,
    /// Tokens that came out.
    pub output_tokens: i64,
    /// Those that went in and were paid as cached.
    pub cached_input_tokens: i64,
    /// All tokens.
    pub total_tokens: i64,
    /// US dollars.
    pub cost_usd: f64,
}

/// Sums over the calls of one agent, model or day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostGroup {
    /// The agent, model or day (`YYYY-MM-DD`); `None` for calls of no recorded agent.
    pub group: Option<String>,
    /// Its sums.
    #[serde(flatten)]
    pub sums: CostSums,
}
