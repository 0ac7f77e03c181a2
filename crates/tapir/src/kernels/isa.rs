//! Which instructions the kernels use, chosen once at run time.

#[cfg(target_arch = "aarch64")]
use std::arch::is_aarch64_feature_detected;
use std::fmt;
use std::sync::OnceLock;

use super::portable::Portable;
use super::simd::Simd;

/// An instruction set that the kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// What the compiler makes of plain loops.
    Portable,
    /// WebAssembly's vectors of 128 bits.
    Simd128,
    /// AVX2 and FMA.
    Avx2,
    /// The same with AVX-VNNI.
    AvxVnni,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// The same with VNNI.
    Avx512Vnni,
    /// NEON.
    Neon,
    /// The same with products of matrices of bytes (`i8mm`). More instructions than dot products for now:
    /// it runs where it is asked for.
    NeonI8mm,
    /// NEON with dot products of bytes (`dotprod`).
    NeonDotprod,
}

impl Isa {
    /// All, each behind those that take more time, or more instructions, on processors that run both.
    const ALL: [Self; 9] = [
        Self::Portable,
        Self::Simd128,
        Self::Avx2,
        Self::AvxVnni,
        Self::Avx512,
        Self::Avx512Vnni,
        Self::Neon,
        Self::NeonI8mm,
        Self::NeonDotprod,
    ];

    /// Those that this machine runs, in ascending order.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|isa| isa.is_available())
    }

    fn is_available(self) -> bool {
        choice().available & self.bit() != 0
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }

    /// The name by which `TAPIR_KERNELS` forces it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Simd128 => "simd128",
            Self::Avx2 => "avx2",
            Self::AvxVnni => "avxvnni",
            Self::Avx512 => "avx512",
            Self::Avx512Vnni => "vnni",
            Self::Neon => "neon",
            Self::NeonI8mm => "i8mm",
            Self::NeonDotprod => "dotprod",
        }
    }

    /// Does the processor have all of its instructions?
    fn detect(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Self::AvxVnni => Self::Avx2.detect() && is_x86_feature_detected!("avxvnni"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.detect()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
            #[cfg(target_arch = "x86_64")]
            Self::Avx512Vnni => Self::Avx512.detect() && is_x86_feature_detected!("avx512vnni"),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => is_aarch64_feature_detected!("neon"),
            #[cfg(target_arch = "aarch64")]
            Self::NeonI8mm => Self::Neon.detect() && is_aarch64_feature_detected!("i8mm"),
            #[cfg(target_arch = "aarch64")]
            Self::NeonDotprod => Self::Neon.detect() && is_aarch64_feature_detected!("dotprod"),
            // Not asked for at run time: a module with instructions that the engine lacks is refused.
            #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
            Self::Simd128 => true,
            // Those of other processors.
            _ => false,
        }
    }

    /// The one of that name among those that the machine runs, else the last of them.
    fn choose(forced: Option<&str>, available: u32) -> Self {
        let runs = |isa: &Self| available & isa.bit() != 0;
        let named = Self::ALL.into_iter().filter(runs).find(|isa| Some(isa.name()) == forced);
        named.or(Self::ALL.into_iter().rfind(runs)).unwrap_or(Self::Portable)
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

struct Choice {
    /// A bit for each that the machine runs.
    available: u32,
    chosen: Isa,
}

fn choice() -> &'static Choice {
    static CHOICE: OnceLock<Choice> = OnceLock::new();
    CHOICE.get_or_init(|| {
        let here = Isa::ALL.into_iter().filter(|isa| isa.detect());
        let available = here.fold(0, |all, isa| all | isa.bit());
        let forced = std::env::var("TAPIR_KERNELS").ok();
        Choice { available, chosen: Isa::choose(forced.as_deref(), available) }
    })
}

/// The instruction set in use: the best of the machine, or the one whose [name](Isa::name)
/// `TAPIR_KERNELS` is, if the machine runs that.
pub fn isa() -> Isa {
    choice().chosen
}

/// A computation written once for all instruction sets.
pub(super) trait Kernel {
    type Output;

    /// To be marked `#[inline(always)]`, with everything in it that touches a vector: only then is
    /// it compiled with the instructions of the function that calls it.
    fn run<S: Simd>(self, s: S) -> Self::Output;
}

/// Run a kernel with the given instructions.
///
/// # Panics
/// If the machine does not have them.
pub(super) fn run<K: Kernel>(isa: Isa, kernel: K) -> K::Output {
    assert!(isa.is_available(), "this machine does not run {isa}");
    match isa {
        // VNNI is about integers, as dot products are; without this, every kernel would be compiled
        // once more for each.
        // SAFETY: the machine has these features, or the assertion above had failed.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 | Isa::AvxVnni => unsafe { super::avx2::run(kernel) },
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        Isa::Simd128 => kernel.run(super::simd128::Simd128),
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 | Isa::Avx512Vnni => unsafe { super::avx512::run(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        Isa::Neon | Isa::NeonI8mm | Isa::NeonDotprod => unsafe { super::neon::run(kernel) },
        _ => kernel.run(Portable::<false>),
    }
}

/// The same for a kernel that multiplies integers.
pub(super) fn run_integers<K: Kernel>(isa: Isa, kernel: K) -> K::Output {
    assert!(isa.is_available(), "this machine does not run {isa}");
    match isa {
        // SAFETY: the machine has these features, or the assertion above had failed.
        #[cfg(target_arch = "x86_64")]
        Isa::AvxVnni => unsafe { super::avx2::run_vnni(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512Vnni => unsafe { super::avx512::run_vnni(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        Isa::NeonI8mm => unsafe { super::neon_i8mm::run(kernel) },
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        Isa::NeonDotprod => unsafe { super::neon_dotprod::run(kernel) },
        _ => run(isa, kernel),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_the_machine_cannot_run_falls_back() {
        let choose = |forced, available: &[Isa]| {
            Isa::choose(forced, available.iter().fold(0, |all, isa| all | isa.bit()))
        };
        let avx2 = [Isa::Portable, Isa::Avx2];
        assert_eq!(choose(None, &avx2), Isa::Avx2);
        assert_eq!(choose(Some("vnni"), &avx2), Isa::Avx2);
        assert_eq!(choose(Some("simd128"), &avx2), Isa::Avx2);
        assert_eq!(choose(Some("portable"), &avx2), Isa::Portable);
        // A server has AVX-512 and no AVX-VNNI, a laptop it is the other way round.
        let server = [Isa::Portable, Isa::Avx2, Isa::Avx512, Isa::Avx512Vnni];
        assert_eq!(choose(Some("avxvnni"), &server), Isa::Avx512Vnni);
        assert_eq!(choose(Some("avx2"), &server), Isa::Avx2);
        assert_eq!(choose(Some("nonsense"), &server), Isa::Avx512Vnni);
        let laptop = [Isa::Portable, Isa::Avx2, Isa::AvxVnni];
        assert_eq!(choose(None, &laptop), Isa::AvxVnni);
        assert_eq!(choose(Some("avx512"), &laptop), Isa::AvxVnni);
        let phone = [Isa::Portable, Isa::Neon, Isa::NeonI8mm, Isa::NeonDotprod];
        assert_eq!(choose(None, &phone), Isa::NeonDotprod);
        assert_eq!(choose(Some("i8mm"), &phone), Isa::NeonI8mm);
    }

    #[test]
    fn a_name_is_one_instruction_set() {
        for (i, isa) in Isa::ALL.into_iter().enumerate() {
            assert_eq!(isa.bit(), 1 << i);
            assert_eq!(Isa::ALL.iter().filter(|other| other.name() == isa.name()).count(), 1);
        }
    }

    /// The log of a test run says which instruction sets it was about: past the capture of the test
    /// harness, which hides what passes.
    #[test]
    fn the_chosen_one_is_available() {
        assert!(Isa::available().any(|available| available == isa()));
        assert_eq!(Isa::available().next(), Some(Isa::Portable));
        let tested: Vec<&str> = Isa::available().map(Isa::name).collect();
        let line = format!("kernels that run here: {}; chosen: {}\n", tested.join(", "), isa());
        std::io::stderr().write_all(line.as_bytes()).unwrap();
    }
}
