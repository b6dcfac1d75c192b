//! The compiled program from outside: exit codes, what it prints, what it leaves alone.

mod backup;
mod exits;
mod json;
mod looking;
mod moving;
mod retention;
mod shown;
