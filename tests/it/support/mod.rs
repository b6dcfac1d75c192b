//! What the tests share: legacy installs made from recipes, and ways to compare folders and databases.
#![allow(dead_code, reason = "each test module uses its own part of this")]

pub(crate) mod cases;
pub(crate) mod dump;
pub(crate) mod every_table;
pub(crate) mod expect;
pub(crate) mod inhabited;
pub(crate) mod legacy;
pub(crate) mod openclaw;
pub(crate) mod process;
pub(crate) mod recipe;
pub(crate) mod rng;
pub(crate) mod rows;
pub(crate) mod sandbox;
pub(crate) mod scale;
pub(crate) mod secrets;
pub(crate) mod sqlite;
pub(crate) mod stranger;
pub(crate) mod tree;
