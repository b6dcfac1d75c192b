//! The doctor from outside: the compiled program on installs as the old one left them, and what is there afterwards.

mod cases;
mod crash;
mod sample;
mod state;
