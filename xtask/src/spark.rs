//! `cargo xtask spark`: a small cluster of Apache Spark on this machine, for the tests of `--engine`.
//!
//! Everything is in `target/spark`: the virtual environment with `pyspark` and a `protoc`, and for
//! each process a log, a file with its id, and a folder to work in.

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::failure::{Result, TaskFailure};
use crate::options::TaskOptions;
use crate::python::Venv;
use crate::shell;

/// The address of the Connect server, as `--engine` takes it.
pub(crate) const ADDRESS: &str = "spark://127.0.0.1:15002";

/// The environment variable that gives tests the address.
pub(crate) const ADDRESS_VARIABLE: &str = "SESSIONS_SPARK";

/// The environment variable that gives tests the folder of the processes.
pub(crate) const PROCESSES_VARIABLE: &str = "SESSIONS_SPARK_PROCESSES";

const FOLDER: &str = "target/spark";
const VENV: &str = "target/spark/venv";

/// `pyspark` has Spark itself, and `grpcio-tools` has the compiler of protocol buffers.
const PACKAGES: [&str; 2] = ["pyspark==4.3.0", "grpcio-tools==1.85.1"];

const CONNECT_PORT: u16 = 15002;

/// Maximum time until the Connect server answers. It takes about 20 seconds on a machine that has
/// nothing else to do.
const START_SECONDS: u64 = 240;

/// Maximum time until a process ends that was asked to.
const STOP_SECONDS: u64 = 20;

pub(crate) fn run(root: &Path, options: TaskOptions) -> Result<()> {
    match options.rest.as_slice() {
        [action] if action == "install" => install(root).map(|_| ()),
        [action] if action == "up" => {
            start(root)?;
            wait_for_server(root)?;
            shell::print_line(ADDRESS);
            Ok(())
        }
        [action] if action == "down" => stop(root),
        _ => Err(TaskFailure::usage(
            "give one of install, up and down; see `cargo xtask spark --help`",
        )),
    }
}

/// Returns the path of a compiler of protocol buffers, which is installed if it is missing.
pub(crate) fn protoc(root: &Path) -> Result<PathBuf> {
    install(root)?;
    Ok(root.join(FOLDER).join("protoc"))
}

/// Returns the folder with a log and an id for each process.
pub(crate) fn processes_folder(root: &Path) -> PathBuf {
    root.join(FOLDER).join("run")
}

/// Installs Spark and `protoc`, once.
fn install(root: &Path) -> Result<PathBuf> {
    let marker = root.join(FOLDER).join("installed");
    let wanted = PACKAGES.join("\n");
    if fs::read_to_string(&marker).is_ok_and(|found| found == wanted) {
        return find_spark(root);
    }
    let venv = Venv::install(root, "python3", VENV, &PACKAGES)?;
    let script =
        format!("#!/bin/sh\nexec '{}' -m grpc_tools.protoc \"$@\"\n", venv.program("python"));
    let protoc = root.join(FOLDER).join("protoc");
    fs::write(&protoc, script).map_err(TaskFailure::io("write", &protoc))?;
    shell::run_program(root, "chmod", &["755", &protoc.to_string_lossy()])?;
    let spark = find_spark(root)?;
    fs::write(&marker, wanted).map_err(TaskFailure::io("write", &marker))?;
    Ok(spark)
}

/// Returns the folder of Spark in the virtual environment.
fn find_spark(root: &Path) -> Result<PathBuf> {
    let libraries = fs::read_dir(root.join(VENV).join("lib"));
    for entry in libraries.into_iter().flatten().flatten() {
        let spark = entry.path().join("site-packages/pyspark");
        if spark.join("bin/spark-class").is_file() {
            return Ok(spark);
        }
    }
    Err(TaskFailure::step(format!("{VENV} has no pyspark; remove {FOLDER} and try again")))
}

/// Starts the processes that do not run yet: a master, two workers and the Connect server.
pub(crate) fn start(root: &Path) -> Result<()> {
    let spark = install(root)?;
    let run = processes_folder(root);
    let master =
        "org.apache.spark.deploy.master.Master --host 127.0.0.1 --port 7077 --webui-port 8090";
    spawn(&spark, &run, "master", "spark-class", master)?;
    for number in [1, 2] {
        let worker = format!(
            "org.apache.spark.deploy.worker.Worker --host 127.0.0.1 --port 708{number} \
             --webui-port 809{number} --cores 1 --memory 3g --work-dir work{number} \
             spark://127.0.0.1:7077"
        );
        spawn(&spark, &run, &format!("worker{number}"), "spark-class", &worker)?;
    }
    let connect = format!(
        "--class org.apache.spark.sql.connect.service.SparkConnectServer \
         --master spark://127.0.0.1:7077 --driver-memory 2g --conf spark.executor.memory=2g \
         --conf spark.executor.cores=1 --conf spark.connect.grpc.binding.address=127.0.0.1 \
         --conf spark.connect.grpc.binding.port={CONNECT_PORT} --conf spark.driver.host=127.0.0.1 \
         --conf spark.sql.shuffle.partitions=8 --conf spark.sql.session.timeZone=UTC spark-internal"
    );
    spawn(&spark, &run, "connect", "spark-submit", &connect)
}

/// Starts a process, unless it runs already. Its arguments are separated by spaces.
fn spawn(spark: &Path, run: &Path, name: &str, program: &str, arguments: &str) -> Result<()> {
    if find_process(run, name).is_some() {
        return Ok(());
    }
    fs::create_dir_all(run).map_err(TaskFailure::io("write", run))?;
    let path = run.join(format!("{name}.log"));
    let log = File::create(&path).map_err(TaskFailure::io("write", &path))?;
    let errors = log.try_clone().map_err(TaskFailure::io("write", &path))?;
    let mut command = Command::new(spark.join("bin").join(program));
    command
        .args(arguments.split_whitespace())
        .current_dir(run)
        .env("SPARK_HOME", spark)
        .env("SPARK_LOCAL_IP", "127.0.0.1")
        .env("SPARK_NO_DAEMONIZE", "1")
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(errors);
    // Ctrl+C in a terminal ends xtask only.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let child = command.spawn().map_err(|error| {
        TaskFailure::step(format!("`{program}` could not be started: {error}. Spark needs Java 17"))
    })?;
    let id = run.join(format!("{name}.pid"));
    fs::write(&id, child.id().to_string()).map_err(TaskFailure::io("write", &id))
}

/// Waits until the Connect server accepts connections.
pub(crate) fn wait_for_server(root: &Path) -> Result<()> {
    let until = Instant::now() + Duration::from_secs(START_SECONDS);
    let run = processes_folder(root);
    while TcpStream::connect(("127.0.0.1", CONNECT_PORT)).is_err() {
        let is_gone = find_process(&run, "connect").is_none();
        if is_gone || Instant::now() >= until {
            let log = fs::read_to_string(run.join("connect.log")).unwrap_or_default();
            let lines: Vec<&str> = log.lines().collect();
            let end = lines[lines.len().saturating_sub(15)..].join("\n");
            return Err(TaskFailure::step(format!("the Connect server did not start:\n{end}")));
        }
        sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// Ends the processes that [`start`] started.
pub(crate) fn stop(root: &Path) -> Result<()> {
    let run = processes_folder(root);
    for name in ["connect", "worker1", "worker2", "master"] {
        let Some(id) = find_process(&run, name) else { continue };
        send_signal(&id, "-TERM");
        let until = Instant::now() + Duration::from_secs(STOP_SECONDS);
        while find_process(&run, name).is_some() {
            if Instant::now() >= until {
                send_signal(&id, "-KILL");
                break;
            }
            sleep(Duration::from_millis(100));
        }
        let _ = fs::remove_file(run.join(format!("{name}.pid")));
    }
    Ok(())
}

/// Returns the id of a process that runs. Another program may have the id of one that ended.
fn find_process(run: &Path, name: &str) -> Option<String> {
    let id = fs::read_to_string(run.join(format!("{name}.pid"))).ok()?;
    let listed = Command::new("ps").args(["-o", "stat=,args=", "-p", &id]).output().ok()?;
    let line = String::from_utf8_lossy(&listed.stdout).into_owned();
    let is_running = line.contains("org.apache.spark") && !line.trim_start().starts_with('Z');
    is_running.then_some(id)
}

fn send_signal(id: &str, signal: &str) {
    let _ = Command::new("kill").args([signal, id]).status();
}
