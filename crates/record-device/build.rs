//! Links the library so that it is never unloaded: OpenCL's loaders close their layers, while threads and exit handlers
//! may still come here.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
