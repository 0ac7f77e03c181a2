//! 16 lanes as one register of AVX-512, with and without VNNI.

use std::arch::x86_64::{
    __m512, __m512i, _MM_HINT_T1, _mm_prefetch, _mm256_add_ps, _mm256_loadu_si256, _mm512_abs_ps,
    _mm512_add_epi32, _mm512_add_ps, _mm512_and_ps, _mm512_castps_si512, _mm512_castps512_ps256,
    _mm512_castsi512_ps, _mm512_cvtepi8_epi16, _mm512_cvtepi32_ps, _mm512_div_ps,
    _mm512_dpwssd_epi32, _mm512_extractf32x8_ps, _mm512_fmadd_ps, _mm512_loadu_ps,
    _mm512_madd_epi16, _mm512_max_ps, _mm512_min_ps, _mm512_mul_ps, _mm512_or_ps,
    _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_si512, _mm512_slli_epi32, _mm512_storeu_ps,
    _mm512_sub_ps,
};

use super::avx2::sum8;
use super::isa::Kernel;
use super::pairs::{Pairwise, lines_of_pairs};
use super::simd::{LANES, MOST_ROWS, Simd};

/// Proof that the machine has AVX-512 F, BW, DQ and VL, and VNNI too if `VNNI`.
#[derive(Clone, Copy)]
pub(super) struct Avx512<const VNNI: bool>(());

/// Run a kernel, compiled for AVX-512.
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512::<false>(()))
}

/// Run a kernel, compiled for AVX-512 with VNNI.
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) fn run_vnni<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512::<true>(()))
}

/// The same as `run`, never inlined.
#[inline(never)]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl")]
fn run_apart<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512::<false>(()))
}

/// The same as `run_vnni`, never inlined.
#[inline(never)]
#[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
fn run_vnni_apart<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx512::<true>(()))
}

/// Safe methods over intrinsics, so that the reason is given once.
macro_rules! intrinsics {
    ($(fn $name:ident$(<$k:ident: $bound:ident>)?($self:ident $(, $arg:ident: $ty:ty)*) $(-> $out:ty)? $body:block)*) => {$(
        #[inline(always)]
        fn $name$(<$k: $bound>)?($self $(, $arg: $ty)*) $(-> $out)? {
            // SAFETY: `self` exists only inside `run` and `run_vnni`, where the instructions are
            // enabled. The only memory touched is that of references, within their lengths.
            unsafe { $body }
        }
    )*};
}

impl<const VNNI: bool> Simd for Avx512<VNNI> {
    type F32 = __m512;
    type I32 = __m512i;

    const PANELS: [usize; MOST_ROWS] = super::WIDE_PANELS;
    const PANELS_INT8: [usize; MOST_ROWS] = super::WIDE_PANELS;

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> Self::F32 {
        // SAFETY: the caller gives 16 readable f32.
        unsafe { _mm512_loadu_ps(from) }
    }

    lines_of_pairs! {}

    intrinsics! {
        fn splat(self, value: f32) -> Self::F32 { _mm512_set1_ps(value) }
        fn store(self, v: Self::F32, to: &mut [f32; LANES]) { _mm512_storeu_ps(to.as_mut_ptr(), v); }
        fn add(self, a: Self::F32, b: Self::F32) -> Self::F32 { _mm512_add_ps(a, b) }
        fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32 { _mm512_sub_ps(a, b) }
        fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32 { _mm512_mul_ps(a, b) }
        fn div(self, a: Self::F32, b: Self::F32) -> Self::F32 { _mm512_div_ps(a, b) }
        fn fma(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32 { _mm512_fmadd_ps(a, b, c) }
        fn max(self, a: Self::F32, b: Self::F32) -> Self::F32 { _mm512_max_ps(a, b) }
        fn min(self, a: Self::F32, b: Self::F32) -> Self::F32 { _mm512_min_ps(a, b) }
        fn abs(self, v: Self::F32) -> Self::F32 { _mm512_abs_ps(v) }
        fn with_sign(self, v: Self::F32, sign: Self::F32) -> Self::F32 {
            _mm512_or_ps(v, _mm512_and_ps(_mm512_set1_ps(-0.0), sign))
        }
        fn pow2(self, n: Self::F32) -> Self::F32 {
            // Adding 1.5 * 2^23 leaves n in the low bits; shifting drops all but n and the bias.
            let low = _mm512_castps_si512(_mm512_add_ps(n, _mm512_set1_ps(12_582_912.0)));
            _mm512_castsi512_ps(_mm512_slli_epi32::<23>(_mm512_add_epi32(low, _mm512_set1_epi32(127))))
        }
        fn sum(self, v: Self::F32) -> f32 {
            sum8(_mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps::<1>(v)))
        }
        fn zero_i32(self) -> Self::I32 { _mm512_setzero_si512() }
        fn to_f32(self, v: Self::I32) -> Self::F32 { _mm512_cvtepi32_ps(v) }
        fn apart<K: Kernel>(self, kernel: K) -> K::Output {
            if VNNI { run_vnni_apart(kernel) } else { run_apart(kernel) }
        }
        fn prefetch(self, address: *const u8) { _mm_prefetch::<_MM_HINT_T1>(address.cast()); }
    }
}

impl<const VNNI: bool> Pairwise for Avx512<VNNI> {
    type Pairs = __m512i;

    #[inline(always)]
    unsafe fn load_pairs(self, from: *const i8) -> Self::Pairs {
        // SAFETY: the caller gives 32 readable bytes.
        unsafe { _mm512_cvtepi8_epi16(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn splat_pair(self, from: *const [i16; 2]) -> Self::Pairs {
        // SAFETY: the caller gives a readable pair.
        unsafe { _mm512_set1_epi32(from.cast::<i32>().read_unaligned()) }
    }

    intrinsics! {
        fn dot_pairs(self, acc: Self::I32, a: Self::Pairs, b: Self::Pairs) -> Self::I32 {
            if VNNI { _mm512_dpwssd_epi32(acc, a, b) } else { _mm512_add_epi32(acc, _mm512_madd_epi16(a, b)) }
        }
    }
}
