//! Levels and classes by name, and payloads byte by byte.

use taskscope_event::models::instrument::{class, level};

/// Audience of a key. A key is on if its level is at most the chosen one (`TASKSCOPE_LEVEL`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Level {
    /// All users: on at any level.
    Enabled = level::ENABLED,
    /// Users of a program or runtime.
    User = level::USER,
    /// Its developers; on by default.
    Developer = level::DEVELOPER,
    /// Users with special interests.
    Advanced = level::ADVANCED,
    /// On only if named.
    Disabled = level::DISABLED,
}

impl Level {
    /// The level of this number; [`Level::User`] for other numbers.
    pub fn from_number(number: u32) -> Level {
        [Level::Enabled, Level::Developer, Level::Advanced, Level::Disabled]
            .into_iter()
            .find(|level| *level as u32 == number)
            .unwrap_or(Level::User)
    }
}

/// How the time in a state counts in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Class {
    /// The program's own work.
    Useful = class::USEFUL,
    /// The runtime's work.
    Runtime = class::RUNTIME,
    /// Looking for a task to run.
    Scheduling = class::SCHEDULING,
    /// Making tasks.
    Creation = class::CREATION,
    /// Waiting for other tasks.
    Synchronisation = class::SYNCHRONISATION,
    /// Waiting for a lock.
    Lock = class::LOCK,
    /// Moving data, or waiting for it.
    Communication = class::COMMUNICATION,
    /// No work available.
    Idle = class::IDLE,
    /// Stopped on purpose.
    Stopped = class::STOPPED,
    /// Giving way to others.
    Yield = class::YIELD,
}

impl Class {
    /// The class of this number; [`Class::Useful`] for other numbers.
    pub fn from_number(number: u32) -> Class {
        use Class::*;
        let all = [
            Useful,
            Runtime,
            Scheduling,
            Creation,
            Synchronisation,
            Lock,
            Communication,
            Idle,
            Stopped,
            Yield,
        ];
        all.into_iter().find(|class| *class as u32 == number).unwrap_or(Useful)
    }
}

#[inline(always)]
pub(super) fn word(value: u32) -> [u8; 4] {
    value.to_le_bytes()
}

#[inline(always)]
pub(super) fn long(value: u64) -> [u8; 8] {
    value.to_le_bytes()
}

#[inline(always)]
pub(super) fn two_longs(first: u64, second: u64) -> [u8; 16] {
    (u128::from(first) | u128::from(second) << 64).to_le_bytes()
}

#[inline(always)]
pub(super) fn word_and_long(first: u32, second: u64) -> [u8; 12] {
    let mut payload = [0; 12];
    payload[..4].copy_from_slice(&first.to_le_bytes());
    payload[4..].copy_from_slice(&second.to_le_bytes());
    payload
}

#[inline(always)]
pub(super) fn long_and_word(first: u64, second: u32) -> [u8; 12] {
    let mut payload = [0; 12];
    payload[..8].copy_from_slice(&first.to_le_bytes());
    payload[8..].copy_from_slice(&second.to_le_bytes());
    payload
}

#[inline(always)]
pub(super) fn triple(first: u32, second: u32, third: u64) -> [u8; 16] {
    two_longs(u64::from(first) | u64::from(second) << 32, third)
}
