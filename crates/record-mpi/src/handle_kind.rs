//! Kinds of handles.

use core::ffi::CStr;

/// Table of a Fortran handle.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    Communicator,
    Datatype,
    Request,
    Message,
    Window,
    File,
    Group,
    Session,
}

impl Kind {
    /// The name of the conversion of handles.
    pub fn conversion(self) -> &'static CStr {
        match self {
            Kind::Communicator => c"PMPI_Comm_f2c",
            Kind::Datatype => c"PMPI_Type_f2c",
            Kind::Request => c"PMPI_Request_f2c",
            Kind::Message => c"PMPI_Message_f2c",
            Kind::Window => c"PMPI_Win_f2c",
            Kind::File => c"PMPI_File_f2c",
            Kind::Group => c"PMPI_Group_f2c",
            Kind::Session => c"PMPI_Session_f2c",
        }
    }
}
