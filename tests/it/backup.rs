//! Backup, verification and restore, through the library, on real roots.

mod contents;
mod create;
mod damage;
mod encryption;
mod home;
mod hostile;
mod kill;
mod restore;
mod secrets;
