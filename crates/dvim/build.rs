//! Sets `cfg(avx512)` where the compiler has the intrinsics of AVX-512: on x86-64, from Rust 1.89 on.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(avx512)");
    println!("cargo::rerun-if-changed=build.rs");
    let is_x86 = std::env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|arch| arch == "x86_64");
    if is_x86 && autocfg::new().probe_rustc_version(1, 89) {
        println!("cargo::rustc-cfg=avx512");
    }
}
