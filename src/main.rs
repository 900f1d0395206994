//! The `staled` program: hands its arguments to the command line and its exit code to the shell.

fn main() -> std::process::ExitCode {
    staled::cli::run(std::env::args_os())
}
