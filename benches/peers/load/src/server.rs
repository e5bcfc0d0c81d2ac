//! A server as a child process, pinned to one core, and what the system says of it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// The core of the servers. The generator has the other one.
const CORE: &str = "0";

pub struct Server {
    child: Child,
    pub port: u16,
}

impl Server {
    pub fn start(path: &str, environment: &[(&str, &str)]) -> Self {
        let mut child = Command::new("taskset")
            .args(["-c", CORE, path])
            .envs(environment.iter().copied())
            .stdout(Stdio::piped())
            .spawn()
            .expect("taskset");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a port");
        Self { child, port: line.trim().parse().expect("a port") }
    }

    /// Nanoseconds of CPU that it has spent, in user space and in the kernel.
    pub fn cpu(&self) -> u64 {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("a process");
        tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok())
            .filter_map(|text| text.split_whitespace().next()?.parse::<u64>().ok())
            .sum()
    }

    /// Bytes of resident memory.
    pub fn resident(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("a process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
        let kibibytes: f64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
        kibibytes * 1024.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
