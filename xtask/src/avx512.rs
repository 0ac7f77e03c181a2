//! The kernels of AVX-512, run by an emulator: Bochs of Debian emulates an Ice Lake. It emulates a
//! whole machine and no programs, so that this one starts a kernel of Debian whose first process
//! runs the tests. What they say comes over a serial port.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::arm::{build, program};

const TARGET: &str = "x86_64-unknown-linux-musl";
const PROCESSOR: &str = "corei7_icelake_u";

/// The packages, and a file of each by which we know that it is there.
const PACKAGES: [(&str, &str); 7] = [
    ("bochs", "/usr/bin/bochs"),
    ("bochs-term", "/usr/lib/x86_64-linux-gnu/bochs/plugins/libbx_term_gui.so"),
    ("bochsbios", BIOS),
    ("vgabios", VIDEO_BIOS),
    ("isolinux", LOADER[0]),
    ("syslinux-common", LOADER[1]),
    ("xorriso", "/usr/bin/xorriso"),
];
const BIOS: &str = "/usr/share/bochs/BIOS-bochs-latest";
const VIDEO_BIOS: &str = "/usr/share/bochs/VGABIOS-lgpl-latest";
const LOADER: [&str; 2] =
    ["/usr/lib/ISOLINUX/isolinux.bin", "/usr/lib/syslinux/modules/bios/ldlinux.c32"];

/// The kernels that run there.
const KERNELS: &str = "portable, avx2, avx512, vnni";

/// The recorded outputs, and the kernels by which models run in them.
const PARITY: [&str; 2] = ["parity", "parity_bert"];
const MODELS: [&str; 2] = ["vnni", "avx512"];

/// What Linux must not use. Bochs 2.7 gives no size for the state of protection keys, and a wrong
/// one for compacted states; Linux would then do without AVX altogether. With fast short copies
/// (`fsrm`) it did not start: a `memmove` did not end.
const WITHOUT: &str = "fsrm,pku,ospke,xsavec,xsaves";

/// The tests, if they can be run here; if not, that is said.
pub(crate) fn test() -> Result<()> {
    let since = Instant::now();
    if !install() {
        println!(
            "Bochs, its boot loader or {TARGET} cannot be installed here: AVX-512 is not tested"
        );
        return Ok(());
    }
    let folder = std::path::absolute(crate::root().join("target/avx512"))?;
    let image = folder.join("image");
    fs::create_dir_all(&image)?;
    let Some(kernel) = kernel(&folder)? else {
        println!("a kernel of Debian cannot be had here: AVX-512 is not tested");
        return Ok(());
    };
    fs::copy(kernel, image.join("vmlinuz"))?;
    let runs = fill(&folder, &image.join("initramfs"))?;
    let disc = folder.join("disc.iso");
    master(&image, &disc)?;
    let said = boot(&folder, &disc)?;
    let expected = format!("kernels that run here: {KERNELS}; chosen: vnni");
    ensure!(said.contains(&expected), "the machine has other kernels than {KERNELS}");
    for run in &runs {
        let passed = said.lines().any(|line| line.strip_prefix("init: passed ") == Some(run));
        ensure!(passed, "failed on {PROCESSOR}: {run}");
    }
    println!("\nof AVX-512, emulated, passed:\n  {}", runs.join("\n  "));
    println!("all of it took {} s", since.elapsed().as_secs());
    Ok(())
}

/// The emulator, what makes a disc, and the target. A developer's own machine is left alone.
fn install() -> bool {
    let there = PACKAGES.iter().all(|(_, file)| Path::new(file).exists());
    let packages = PACKAGES.map(|(package, _)| package);
    let emulates = there || crate::is_ci() && crate::apt_install(&packages);
    emulates && crate::add_target(TARGET)
}

/// A kernel of Debian, unpacked and not installed: the small one for machines in a cloud, which is
/// quick to start. None if it cannot be downloaded.
fn kernel(folder: &Path) -> Result<Option<PathBuf>> {
    let unpacked = folder.join("kernel");
    if let Some(kernel) = starting_with(&unpacked.join("boot"), "vmlinuz-") {
        return Ok(Some(kernel));
    }
    // The package of that name has no files: it depends on the newest that has.
    let depends = Command::new("apt-cache").args(["depends", "linux-image-cloud-amd64"]).output();
    let Ok(depends) = depends else { return Ok(None) };
    let depends = String::from_utf8_lossy(&depends.stdout);
    let package = depends.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    let Some(package) = package else { return Ok(None) };
    println!("\n$ apt-get download {package}");
    let status = Command::new("apt-get").args(["download", package]).current_dir(folder).status();
    if !status.is_ok_and(|status| status.success()) {
        return Ok(None);
    }
    let archive = starting_with(folder, package).context("apt-get downloaded nothing")?;
    crate::say(Command::new("dpkg-deb").arg("-x").arg(archive).arg(&unpacked))?;
    Ok(starting_with(&unpacked.join("boot"), "vmlinuz-"))
}

/// The file in a folder whose name starts so.
fn starting_with(folder: &Path, start: &str) -> Option<PathBuf> {
    let mut paths = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start)))
}

/// Builds the tests and packs them, with what they read, for the machine; what it will run.
fn fill(folder: &Path, to: &Path) -> Result<Vec<String>> {
    let tests = PARITY.iter().flat_map(|name| ["--test", name]);
    let arguments: Vec<&str> = ["test", "--no-run", "--lib"].into_iter().chain(tests).collect();
    let programs = build(TARGET, &arguments)?;
    let init = folder.join("init");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "--target", TARGET, "-C", "linker=rust-lld", "-o"]);
    crate::say(rustc.arg(&init).arg(crate::root().join("xtask/init.rs")))?;

    let mut archive = Archive::default();
    archive.program("init", &init)?;
    archive.program("tapir", &program(&programs, "tapir")?)?;
    let mut runs = vec!["any /tapir kernels::".to_owned()];
    for test in PARITY {
        archive.program(test, &program(&programs, test)?)?;
        runs.extend(MODELS.map(|kernels| format!("{kernels} /{test}")));
    }
    archive.file("runs", 0o644, runs.join("\n").as_bytes());
    // The tests know the path of their crate.
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("crates/tapir/tests");
    for folder in ["parity", "parity-bert"] {
        for path in crate::files(&tests.join(folder))? {
            archive.add(&path)?;
        }
    }
    fs::write(to, archive.end())?;
    Ok(runs)
}

/// Files for the kernel to start with, in the "newc" format of cpio.
#[derive(Default)]
struct Archive {
    bytes: Vec<u8>,
    folders: Vec<PathBuf>,
}

impl Archive {
    fn program(&mut self, name: &str, path: &Path) -> Result<()> {
        let content = fs::read(path).with_context(|| path.display().to_string())?;
        self.file(name, 0o755, &content);
        Ok(())
    }

    /// A file at the path that it has here, and the folders above it.
    fn add(&mut self, path: &Path) -> Result<()> {
        let ancestors: Vec<&Path> = path.ancestors().skip(1).collect();
        for folder in ancestors.into_iter().rev().skip(1) {
            if !self.folders.iter().any(|known| known == folder) {
                self.entry(&folder.to_string_lossy()[1..], 0o040_755, &[]);
                self.folders.push(folder.into());
            }
        }
        let content = fs::read(path).with_context(|| path.display().to_string())?;
        self.file(&path.to_string_lossy()[1..], 0o644, &content);
        Ok(())
    }

    fn file(&mut self, name: &str, mode: u32, content: &[u8]) {
        self.entry(name, 0o100_000 | mode, content);
    }

    /// Thirteen numbers in hexadecimal, the name and the content, each padded to four bytes.
    fn entry(&mut self, name: &str, mode: u32, content: &[u8]) {
        let (size, length) = (content.len() as u32, name.len() as u32 + 1);
        // Number, mode, owner, group, links, time, size, two devices, length of the name, checksum.
        let numbers = [0, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, length, 0];
        let mut header = "070701".to_owned();
        for number in numbers {
            let _ = write!(header, "{number:08x}");
        }
        self.bytes.extend(header.bytes().chain(name.bytes()).chain([0]));
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn end(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.bytes
    }
}

/// Makes a disc that starts the kernel: Bochs has no option for one.
fn master(image: &Path, disc: &Path) -> Result<()> {
    for file in LOADER.map(Path::new) {
        fs::copy(file, image.join(file.file_name().context("a file")?))?;
    }
    // A serial port takes thousands of instructions for a character at the usual 9,600 baud.
    let arguments = format!(
        "console=ttyS0,115200 loglevel=4 mitigations=off tsc=reliable clearcpuid={WITHOUT}"
    );
    let lines = ["default tapir", "label tapir", "kernel vmlinuz", "initrd initramfs"].join("\n");
    fs::write(image.join("isolinux.cfg"), format!("{lines}\nappend {arguments}\n"))?;
    let mut xorriso = Command::new("xorriso");
    xorriso.args(["-as", "mkisofs", "-quiet", "-b", "isolinux.bin", "-c", "boot.cat"]);
    xorriso.args(["-no-emul-boot", "-boot-load-size", "4", "-boot-info-table", "-o"]);
    crate::say(xorriso.arg(disc).arg(image))
}

/// Starts the machine; what it said until all had run.
fn boot(folder: &Path, disc: &Path) -> Result<String> {
    // A file would do, but Bochs writes to it by the page, and the end would be missing.
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    // A low number of instructions a second: that many pass in a second of the machine, and it
    // waits for its devices.
    let settings = format!(
        "display_library: term\n\
         cpu: model={PROCESSOR}, ips=10000000, reset_on_triple_fault=0\n\
         clock: sync=none\n\
         megs: 512\n\
         romimage: file={BIOS}\n\
         vgaromimage: file={VIDEO_BIOS}\n\
         ata0-master: type=cdrom, path=\"{}\", status=inserted\n\
         boot: cdrom\n\
         com1: enabled=1, mode=socket-client, dev=127.0.0.1:{port}\n\
         log: \"{}\"\n\
         info: action=ignore\n\
         error: action=ignore\n\
         panic: action=fatal\n",
        disc.display(),
        folder.join("bochs.log").display(),
    );
    fs::write(folder.join("bochsrc"), settings)?;
    // Debian's is built with its debugger, which waits for a command.
    fs::write(folder.join("continue"), "c\n")?;
    println!("\n$ bochs -q -f bochsrc -rc continue ({PROCESSOR})");
    let screen = fs::File::create(folder.join("screen.txt"))?;
    let mut bochs = Command::new("bochs")
        .args(["-q", "-f", "bochsrc", "-rc", "continue"])
        .current_dir(folder)
        .env("TERM", "vt100")
        .stdin(Stdio::null())
        .stdout(screen.try_clone()?)
        .stderr(screen)
        .spawn()
        .context("cannot start bochs")?;
    let said = listen(&listener, &mut bochs);
    // Nothing is lost: its disc cannot be written.
    bochs.kill()?;
    bochs.wait()?;
    said
}

/// What comes over the serial port, which Bochs connects when it starts.
fn listen(listener: &TcpListener, bochs: &mut Child) -> Result<String> {
    listener.set_nonblocking(true)?;
    let stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(status) = bochs.try_wait()? {
            bail!("bochs ended: {status}; see target/avx512/bochs.log");
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    stream.set_nonblocking(false)?;
    let since = Instant::now();
    let mut said = String::new();
    for line in BufReader::new(stream).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if !line.is_empty() {
            println!("{:5} s  {line}", since.elapsed().as_secs());
        }
        said += line;
        said.push('\n');
        ensure!(!line.contains("Kernel panic"), "the machine's kernel gave up");
        if line == "init: end" {
            return Ok(said);
        }
    }
    bail!("bochs ended before the tests; see target/avx512/bochs.log")
}
