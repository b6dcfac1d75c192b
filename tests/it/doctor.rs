//! The doctor from outside: the compiled program on installs as the old one left them, and what is there afterwards.

mod acp;
mod again;
mod archives;
mod cases;
mod costs;
mod crash;
mod devices;
mod failure;
mod flows;
mod knowledge;
mod markdown;
mod messages;
mod modes;
mod owners;
mod progress;
mod race;
mod refusal;
mod sample;
mod scale;
mod space;
mod state;
mod stop;
mod trace;
mod undo;
