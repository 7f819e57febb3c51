//! The `sessions` binary. All code is in the library.

fn main() -> std::process::ExitCode {
    sessions::cli::run(std::env::args_os())
}
