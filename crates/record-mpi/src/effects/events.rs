//! Events of messages, and their payloads.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use taskscope_event::models::messages;
use taskscope_ompt::shared::Moment;

use crate::communicators::Communicator;
use crate::library::{Library, Status};
use crate::requests::Receive;

/// The next number of a send or receive of this process.
static POSTS: AtomicU64 = AtomicU64::new(0);

pub(super) fn next_post() -> u64 {
    POSTS.fetch_add(1, Relaxed)
}

pub(super) fn record_send(
    post: u64,
    comm: &Communicator,
    peer: i32,
    tag: i32,
    bytes: u64,
    moment: &mut Moment<'_>,
) {
    moment.recorder.own_jumbo(
        moment.at,
        messages::SEND,
        &[
            &post.to_le_bytes(),
            &bytes.to_le_bytes(),
            &comm.number.to_le_bytes(),
            &comm.peer(peer).to_le_bytes(),
            &tag.to_le_bytes(),
        ],
    );
}

pub(super) fn record_sent(post: u64, moment: &mut Moment<'_>) {
    moment.recorder.own_point(moment.at, messages::SENT, post.to_le_bytes());
}

pub(super) fn received(receive: &Receive, status: Status, library: &Library, moment: &mut Moment<'_>) {
    if !status.cancelled && status.source != library.proc_null() {
        record_received(receive, receive.comm.peer(status.source), status.tag, status.bytes, moment);
    }
}

pub(super) fn record_received(receive: &Receive, peer: u32, tag: i32, bytes: u64, moment: &mut Moment<'_>) {
    moment.recorder.own_jumbo(
        moment.at,
        messages::RECEIVED,
        &[
            &receive.post.to_le_bytes(),
            &(moment.at - receive.posted.min(moment.at)).to_le_bytes(),
            &bytes.to_le_bytes(),
            &receive.comm.number.to_le_bytes(),
            &peer.to_le_bytes(),
            &tag.to_le_bytes(),
        ],
    );
}

pub(super) fn probed(comm: &Communicator, status: Status, library: &Library, moment: &mut Moment<'_>) {
    if status.source != library.proc_null() {
        let mut payload = [0; 12];
        payload[..4].copy_from_slice(&comm.number.to_le_bytes());
        payload[4..8].copy_from_slice(&comm.peer(status.source).to_le_bytes());
        payload[8..].copy_from_slice(&status.tag.to_le_bytes());
        moment.recorder.own_point(moment.at, messages::PROBED, payload);
    }
}

pub(super) fn record_collective(
    comm: &Communicator,
    sequence: u64,
    root: u32,
    bytes: u64,
    number: u32,
    moment: &mut Moment<'_>,
) {
    moment.recorder.own_jumbo(
        moment.at,
        messages::COLLECTIVE,
        &[
            &sequence.to_le_bytes(),
            &bytes.to_le_bytes(),
            &comm.number.to_le_bytes(),
            &root.to_le_bytes(),
            &number.to_le_bytes(),
        ],
    );
}

pub(super) fn record_completed(sequence: u64, comm: u32, moment: &mut Moment<'_>) {
    let mut payload = [0; 12];
    payload[..8].copy_from_slice(&sequence.to_le_bytes());
    payload[8..].copy_from_slice(&comm.to_le_bytes());
    moment.recorder.own_point(moment.at, messages::COLLECTIVE_COMPLETED, payload);
}

pub(super) fn record_access(bytes: u64, comm: &Communicator, peer: u32, moment: &mut Moment<'_>) {
    let mut payload = [0; 16];
    payload[..8].copy_from_slice(&bytes.to_le_bytes());
    payload[8..12].copy_from_slice(&comm.number.to_le_bytes());
    payload[12..].copy_from_slice(&peer.to_le_bytes());
    moment.recorder.own_point(moment.at, messages::CONCERNS, payload);
}

pub(super) fn record_awaited_receive(receive: &Receive, moment: &mut Moment<'_>) {
    record_awaited_source(&receive.comm, receive.source, receive.tag, moment);
}

pub(super) fn record_awaited_source(comm: &Communicator, source: i32, tag: i32, moment: &mut Moment<'_>) {
    let mut payload = [0; 12];
    payload[..4].copy_from_slice(&comm.number.to_le_bytes());
    // A wildcard source has no rank among the members; the wildcard tag has one value in all libraries.
    payload[4..8].copy_from_slice(&comm.peer(source).to_le_bytes());
    payload[8..].copy_from_slice(&tag.to_le_bytes());
    moment.recorder.own_point(moment.at, messages::AWAITS, payload);
}

pub(super) fn record_awaited_send(post: u64, moment: &mut Moment<'_>) {
    moment.recorder.own_point(moment.at, messages::AWAITS_SENT, post.to_le_bytes());
}

pub(super) fn record_awaited_operation(sequence: u64, comm: u32, moment: &mut Moment<'_>) {
    let mut payload = [0; 12];
    payload[..8].copy_from_slice(&sequence.to_le_bytes());
    payload[8..].copy_from_slice(&comm.to_le_bytes());
    moment.recorder.own_point(moment.at, messages::AWAITS_OPERATION, payload);
}
