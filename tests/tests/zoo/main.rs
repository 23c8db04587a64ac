//! The zoo: programs that nobody wrote for hasten, and servers that a seed makes up. Each is run stock and
//! accelerated, and must not be found out.

mod animals;
mod cage;
mod clients;
mod guests;
mod schedules;
