//! Backup, verification and restore, through the library, on real roots.

mod contents;
mod coverage;
mod create;
mod damage;
mod elsewhere;
mod encryption;
mod home;
mod hostile;
mod kill;
mod kills;
mod moving;
mod restless;
mod restore;
mod retention;
mod secrets;
