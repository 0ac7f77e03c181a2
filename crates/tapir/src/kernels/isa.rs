//! Which instructions the kernels use, chosen once at run time.

use std::fmt;
use std::sync::OnceLock;

use super::portable::Portable;
use super::simd::Simd;

/// An instruction set that the kernels are compiled for, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Isa {
    /// What the compiler makes of plain loops.
    Portable,
    /// WebAssembly's vectors of 128 bits.
    Simd128,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
    /// The same with VNNI.
    Avx512Vnni,
}

impl Isa {
    const ALL: [Self; 5] =
        [Self::Portable, Self::Simd128, Self::Avx2, Self::Avx512, Self::Avx512Vnni];

    /// Those that this machine runs, in ascending order.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|isa| isa.is_compiled() && *isa <= choice().best)
    }

    /// Are there kernels for it in this program?
    const fn is_compiled(self) -> bool {
        match self {
            Self::Portable => true,
            Self::Simd128 => cfg!(all(target_arch = "wasm32", target_feature = "simd128")),
            Self::Avx2 | Self::Avx512 | Self::Avx512Vnni => cfg!(target_arch = "x86_64"),
        }
    }

    /// The name by which `TAPIR_KERNELS` forces it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Simd128 => "simd128",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
            Self::Avx512Vnni => "vnni",
        }
    }

    /// The best that the machine runs; it runs the lesser ones too.
    fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if !(is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")) {
                return Self::Portable;
            }
            if !(is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl"))
            {
                return Self::Avx2;
            }
            if is_x86_feature_detected!("avx512vnni") { Self::Avx512Vnni } else { Self::Avx512 }
        }
        // Not asked for at run time: a module with instructions that the engine lacks is refused.
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        return Self::Simd128;
        #[cfg(not(any(
            target_arch = "x86_64",
            all(target_arch = "wasm32", target_feature = "simd128")
        )))]
        Self::Portable
    }

    /// The one of that name, if the machine runs it, else the best.
    fn choose(forced: Option<&str>, best: Self) -> Self {
        let runs = |isa: &Self| isa.is_compiled() && *isa <= best;
        Self::ALL.into_iter().filter(runs).find(|isa| Some(isa.name()) == forced).unwrap_or(best)
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

struct Choice {
    best: Isa,
    chosen: Isa,
}

fn choice() -> &'static Choice {
    static CHOICE: OnceLock<Choice> = OnceLock::new();
    CHOICE.get_or_init(|| {
        let best = Isa::detect();
        let forced = std::env::var("TAPIR_KERNELS").ok();
        Choice { best, chosen: Isa::choose(forced.as_deref(), best) }
    })
}

/// The instruction set in use: the best of the machine, or what `TAPIR_KERNELS` names
/// (`portable`, `avx2`, `avx512` or `vnni`) if the machine runs that.
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
    assert!(isa <= choice().best, "this machine does not run {isa}");
    match isa {
        // SAFETY: the machine has these features, or the assertion above had failed.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { super::avx2::run(kernel) },
        #[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
        Isa::Simd128 => kernel.run(super::simd128::Simd128),
        // VNNI is about integers; without this, every kernel would be compiled once more for it.
        // SAFETY: as above, and with VNNI there is AVX-512.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 | Isa::Avx512Vnni => unsafe { super::avx512::run(kernel) },
        _ => kernel.run(Portable::<false>),
    }
}

/// The same for a kernel that multiplies integers.
pub(super) fn run_integers<K: Kernel>(isa: Isa, kernel: K) -> K::Output {
    assert!(isa <= choice().best, "this machine does not run {isa}");
    match isa {
        // SAFETY: the machine has these features, or the assertion above had failed.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512Vnni => unsafe { super::avx512::run_vnni(kernel) },
        _ => run(isa, kernel),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn what_the_machine_cannot_run_falls_back() {
        assert_eq!(Isa::choose(None, Isa::Avx2), Isa::Avx2);
        assert_eq!(Isa::choose(Some("portable"), Isa::Avx512), Isa::Portable);
        assert_eq!(Isa::choose(Some("avx2"), Isa::Avx512Vnni), Isa::Avx2);
        assert_eq!(Isa::choose(Some("vnni"), Isa::Avx2), Isa::Avx2);
        assert_eq!(Isa::choose(Some("simd128"), Isa::Avx2), Isa::Avx2);
        assert_eq!(Isa::choose(Some("nonsense"), Isa::Avx512), Isa::Avx512);
    }

    #[test]
    fn the_chosen_one_is_available() {
        assert!(Isa::available().any(|available| available == isa()));
        assert_eq!(Isa::available().next(), Some(Isa::Portable));
    }
}
