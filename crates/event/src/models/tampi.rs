//! The events of ovni's `tampi` model, version 1.0.0.

use super::prelude::*;

/// The letter that opens every code of this model.
pub const LETTER: u8 = b'T';
/// The model version that these events belong to.
pub const VERSION: &str = "1.0.0";

events! {
    COMMUNICATION_ISSUING_A_NON_BLOCKING_OPERATION_BEGIN = b"TCi" plain () Push(Channel::Subsystem, 1, "Communication: Issuing a non-blocking operation"), "begins Communication: Issuing a non-blocking operation";
    COMMUNICATION_ISSUING_A_NON_BLOCKING_OPERATION_END = b"TCI" plain () Pop(Channel::Subsystem, 1, "Communication: Issuing a non-blocking operation"), "ends Communication: Issuing a non-blocking operation";
    GLOBAL_ARRAY_CHECKING_PENDING_REQUESTS_BEGIN = b"TGc" plain () Push(Channel::Subsystem, 2, "Global array: Checking pending requests"), "begins Global array: Checking pending requests";
    GLOBAL_ARRAY_CHECKING_PENDING_REQUESTS_END = b"TGC" plain () Pop(Channel::Subsystem, 2, "Global array: Checking pending requests"), "ends Global array: Checking pending requests";
    LIBRARY_CODE_INTERFACE_FUNCTION_BEGIN = b"TLi" plain () Push(Channel::Subsystem, 3, "Library code: Interface function"), "begins Library code: Interface function";
    LIBRARY_CODE_INTERFACE_FUNCTION_END = b"TLI" plain () Pop(Channel::Subsystem, 3, "Library code: Interface function"), "ends Library code: Interface function";
    LIBRARY_CODE_POLLING_FUNCTION_BEGIN = b"TLp" plain () Push(Channel::Subsystem, 4, "Library code: Polling function"), "begins Library code: Polling function";
    LIBRARY_CODE_POLLING_FUNCTION_END = b"TLP" plain () Pop(Channel::Subsystem, 4, "Library code: Polling function"), "ends Library code: Polling function";
    QUEUE_ADDING_TO_A_QUEUE_BEGIN = b"TQa" plain () Push(Channel::Subsystem, 5, "Queue: Adding to a queue"), "begins Queue: Adding to a queue";
    QUEUE_ADDING_TO_A_QUEUE_END = b"TQA" plain () Pop(Channel::Subsystem, 5, "Queue: Adding to a queue"), "ends Queue: Adding to a queue";
    QUEUE_TRANSFERING_TO_GLOBAL_ARRAY_BEGIN = b"TQt" plain () Push(Channel::Subsystem, 6, "Queue: Transfering to global array"), "begins Queue: Transfering to global array";
    QUEUE_TRANSFERING_TO_GLOBAL_ARRAY_END = b"TQT" plain () Pop(Channel::Subsystem, 6, "Queue: Transfering to global array"), "ends Queue: Transfering to global array";
    REQUEST_PROCESSING_A_COMPLETED_REQUEST_BEGIN = b"TRc" plain () Push(Channel::Subsystem, 7, "Request: Processing a completed request"), "begins Request: Processing a completed request";
    REQUEST_PROCESSING_A_COMPLETED_REQUEST_END = b"TRC" plain () Pop(Channel::Subsystem, 7, "Request: Processing a completed request"), "ends Request: Processing a completed request";
    REQUEST_TESTING_A_REQUEST_BEGIN = b"TRt" plain () Push(Channel::Subsystem, 8, "Request: Testing a request"), "begins Request: Testing a request";
    REQUEST_TESTING_A_REQUEST_END = b"TRT" plain () Pop(Channel::Subsystem, 8, "Request: Testing a request"), "ends Request: Testing a request";
    REQUEST_TESTING_ALL_REQUESTS_BEGIN = b"TRa" plain () Push(Channel::Subsystem, 9, "Request: Testing all requests"), "begins Request: Testing all requests";
    REQUEST_TESTING_ALL_REQUESTS_END = b"TRA" plain () Pop(Channel::Subsystem, 9, "Request: Testing all requests"), "ends Request: Testing all requests";
    REQUEST_TESTING_SOME_REQUESTS_BEGIN = b"TRs" plain () Push(Channel::Subsystem, 10, "Request: Testing some requests"), "begins Request: Testing some requests";
    REQUEST_TESTING_SOME_REQUESTS_END = b"TRS" plain () Pop(Channel::Subsystem, 10, "Request: Testing some requests"), "ends Request: Testing some requests";
    TICKET_CREATING_A_TICKET_BEGIN = b"TTc" plain () Push(Channel::Subsystem, 11, "Ticket: Creating a ticket"), "begins Ticket: Creating a ticket";
    TICKET_CREATING_A_TICKET_END = b"TTC" plain () Pop(Channel::Subsystem, 11, "Ticket: Creating a ticket"), "ends Ticket: Creating a ticket";
    TICKET_WAITING_A_TICKET_BEGIN = b"TTw" plain () Push(Channel::Subsystem, 12, "Ticket: Waiting a ticket"), "begins Ticket: Waiting a ticket";
    TICKET_WAITING_A_TICKET_END = b"TTW" plain () Pop(Channel::Subsystem, 12, "Ticket: Waiting a ticket"), "ends Ticket: Waiting a ticket";
}
