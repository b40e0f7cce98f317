//! Sets the library name that `taskscope_name_data` of `taskscope.h` looks for.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtaskscope_mpi.so");
}
