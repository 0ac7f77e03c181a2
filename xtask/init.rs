//! The only process of the machine that `cargo xtask avx512` emulates, compiled by itself: runs the
//! tests that `/runs` lists, a line each, and says how each ended.

use std::process::Command;

fn main() {
    let runs = std::fs::read_to_string("/runs").expect("a list of what to run");
    for run in runs.lines() {
        // Kernels by which models run, or `any`; a program; its arguments.
        let mut words = run.split(' ');
        let kernels = words.next().expect("the name of kernels");
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).env_remove("TAPIR_KERNELS");
        if kernels != "any" {
            command.env("TAPIR_KERNELS", kernels);
        }
        println!("init: starts {run}");
        match command.status() {
            Ok(status) if status.success() => println!("init: passed {run}"),
            Ok(status) => println!("init: failed {run}: {status}"),
            Err(error) => println!("init: failed {run}: {error}"),
        }
    }
    println!("init: end");
    // Linux panics if its first process ends. The emulator is stopped from outside.
    loop {
        std::thread::park();
    }
}
