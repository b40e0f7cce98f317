//! Links the tool so that it is never unloaded: runtimes close their tools at shutdown, while
//! threads and exit handlers may still come here.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    // `taskscope_name_data` of `taskscope.h` asks for it by this name.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtaskscope_ompt.so");
}
